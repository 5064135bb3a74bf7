"""A small application to try the deployment with. Put your own in its place."""

from tickwork import Scheduler, TaskContext

app = Scheduler()  # the store comes from the environment: TICKWORK_STORE


@app.task(timeout=60)
async def greet(ctx: TaskContext, name: str) -> str:
    ctx.logger.info("greeting %s", name)
    return f"hello, {name}"


@app.periodic("0 2 * * *", timezone="Europe/Berlin")
async def cleanup() -> None: ...
