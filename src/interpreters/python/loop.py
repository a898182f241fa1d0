# Cells with an await of their own, on one loop that lasts.

import asyncio


def run_in_loop(coroutine):
    if S.loop is None or S.loop.is_closed():
        S.loop = asyncio.new_event_loop()
    asyncio.set_event_loop(S.loop)
    task = S.loop.create_task(coroutine)
    try:
        return S.loop.run_until_complete(task)
    except KeyboardInterrupt:
        task.cancel()
        try:
            S.loop.run_until_complete(asyncio.wait([task], timeout=1))
        except BaseException:
            pass
        raise
