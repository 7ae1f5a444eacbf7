# SPDX-License-Identifier: LGPL-2.1-or-later
"""An application of Starlette. What it is told of ends is a line each in $NOTES."""

import json
import os
import time

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute

from expiry_starlette import SessionMiddleware, Sessions

FOLDER = os.environ["FOLDER"]
notes = os.open(os.path.join(FOLDER, "notes"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)


async def session_ended(key, data, reason):
    if os.path.exists(os.path.join(FOLDER, "fail")):
        raise RuntimeError("as the test wants it")
    os.write(notes, (json.dumps([time.time_ns(), key, reason, data]) + "\n").encode())


sessions = Sessions(os.path.join(FOLDER, "sessions.db"), session_ended,
                    sweep=float(os.environ.get("SWEEP", "60")), retry=1.0,
                    grace=float(os.environ.get("GRACE", "10")))


async def visit(request):
    """Keeps the words of the query. @answer: what was kept before"""
    before = dict(request.session)
    request.session.update(request.query_params)
    return JSONResponse(before)


async def look(request):
    return JSONResponse(dict(request.session))


async def enter(request):
    request.session["user"] = "alice"
    request.session.renew_key()
    return JSONResponse({})


async def leave(request):
    request.session.clear()
    return JSONResponse({})


async def counters(request):
    return JSONResponse({"told": sessions.told, "failed": sessions.failed,
                         "swept": sessions.swept, "refused": sessions.refused})


async def talk(websocket):
    await websocket.accept()
    await websocket.send_json(dict(websocket.session))
    await websocket.close()


app = Starlette(
    routes=[Route("/visit", visit), Route("/look", look), Route("/enter", enter),
            Route("/leave", leave), Route("/counters", counters),
            WebSocketRoute("/talk", talk)],
    lifespan=sessions.lifespan,
    middleware=[Middleware(SessionMiddleware, sessions=sessions, size_max=1000,
                           max_age=float(os.environ.get("MAX_AGE", "2")))])
