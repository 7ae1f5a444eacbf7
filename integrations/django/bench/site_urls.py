# SPDX-License-Identifier: LGPL-2.1-or-later
from django.http import HttpResponse
from django.urls import path


def visit(request):
    request.session["visits"] = request.session.get("visits", 0) + 1
    return HttpResponse("ok")


urlpatterns = [path("", visit)]
