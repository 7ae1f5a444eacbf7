# SPDX-License-Identifier: LGPL-2.1-or-later
from django.contrib.auth import login, logout
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.urls import path


def visit(request):
    request.session["name"] = request.GET.get("name", "")
    request.session["visits"] = request.session.get("visits", 0) + 1
    if "ttl" in request.GET:
        request.session.set_expiry(int(request.GET["ttl"]))
    return HttpResponse(str(request.session["visits"]))


def enter(request):
    login(request, User.objects.get(), backend="django.contrib.auth.backends.ModelBackend")
    return HttpResponse("in")


def leave(request):
    logout(request)
    return HttpResponse("out")


urlpatterns = [path("visit", visit), path("enter", enter), path("leave", leave)]
