"""pydantic-ai against the proxy, over both APIs: `pydantic_ai_client.py PROGRAM`, where PROGRAM is scripted_backend."""

from importlib.metadata import version

import openai
from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from parrot import KEY, MODEL, PLACES, TOWN, TWO_CALLS, URL, case, run, wait_for_no_replies

KINDS = (OpenAIResponsesModel, OpenAIChatModel)
seen = []


class Town(BaseModel):
    town: str
    number: int


def agent(kind, **more):
    client = openai.AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0, timeout=20)
    made = Agent(kind(MODEL, provider=OpenAIProvider(openai_client=client)), **more)

    @made.tool_plain
    def look(at: str) -> str:
        """Looks somewhere."""
        seen.append(at)
        return f"crimson {len(seen)}"

    return made


@case
async def tools_and_a_second_turn():
    for kind in KINDS:
        seen.clear()
        first = await agent(kind).run(TWO_CALLS)
        assert sorted(seen) == PLACES and "crimson 1" in first.output and "crimson 2" in first.output
        second = await agent(kind).run("say Again.", message_history=first.all_messages())
        assert second.output == "Again."


@case
async def streaming():
    for kind in KINDS:
        async with agent(kind).run_stream("say Hëllo you.") as result:
            pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
        assert len(pieces) > 1 and "".join(pieces) == "Hëllo you."


@case
async def structured_output():
    for kind in KINDS:
        town = Town(town="Oslo", number=3)
        assert (await agent(kind, output_type=NativeOutput(Town)).run(TOWN)).output == town
        by_tool = 'call final_result {"town": "Oslo", "number": 3}'
        assert (await agent(kind, output_type=Town).run(by_tool)).output == town


@case
async def arguments_that_do_not_fit_are_told_to_the_model():
    for kind in KINDS:
        seen.clear()
        result = await agent(kind).run('call look {"place": 7}\nthen\nsay Mended.')
        assert result.output == "Mended." and not seen


@case
async def errors():
    for kind in KINDS:
        for script, status in (("refuse rate-limit", 429), ("refuse context-too-long", 400), ("say Hel\ncut", 502)):
            try:
                await agent(kind).run(script)
            except ModelHTTPError as error:
                assert error.status_code == status, error
            else:
                raise AssertionError(f"{script} succeeded")


@case
async def cancelled():
    for kind in KINDS:
        async with agent(kind).run_stream("say Hëllo you.\nwait") as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                break
    wait_for_no_replies()


run(f"pydantic-ai {version('pydantic-ai-slim')}")
