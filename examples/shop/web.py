"""The web application. It submits tasks and looks at them, and runs none: `uvicorn shop.web:web`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse

from tickwork import NotCancellable, StoreUnavailable, TaskNotFound

from .app import Order, app, export, place


@asynccontextmanager
async def lifespan(web: FastAPI) -> AsyncIterator[None]:
    yield
    await app.close()


web = FastAPI(lifespan=lifespan)


@web.exception_handler(TaskNotFound)
async def not_found(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 404)


@web.exception_handler(StoreUnavailable)
async def unavailable(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": "please try again in a minute"}, 503)


@web.post("/orders", status_code=202)
async def post_order(order: Order, pay_in: float = 0) -> list[str]:
    return [handle.id for handle in await place(order, pay_in)]


@web.get("/orders/{order}")
async def get_order(order: int) -> dict[str, str]:
    steps = [await app.get_task(f"{step}-{order}") for step in ("charge", "ship", "mail")]
    return {step.type: step.status for step in steps}


@web.get("/orders/{order}/why")
async def why(order: int) -> str:
    """What the last step waits for, in a sentence."""
    return str(await app.explain(f"mail-{order}"))


@web.delete("/orders/{order}")
async def cancel_order(order: int) -> dict[str, str]:
    """Only before it is charged. The steps that depend on the payment are cancelled with it."""
    try:
        await app.cancel(f"charge-{order}")
    except NotCancellable as error:
        raise HTTPException(409, str(error)) from None
    return await get_order(order)


@web.post("/exports", status_code=202)
async def post_export(rows: int = 500) -> str:
    """One at a time: who asks for another meanwhile is given the one that is under way."""
    handle = await export.options(dedup_key="export", unique="unfinished", if_exists="return").submit(rows)
    return handle.id


@web.get("/exports/{task_id}")
async def get_export(task_id: str) -> dict[str, object]:
    info = await app.get_task(task_id)
    return {"status": info.status, "progress": info.progress, "note": info.progress_note}
