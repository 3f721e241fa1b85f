"""The OpenAI Agents SDK against the proxy, over both APIs: `agents_client.py PROGRAM`, where PROGRAM is scripted_backend."""

from importlib.metadata import version

import openai
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from pydantic import BaseModel

from parrot import KEY, MODEL, PLACES, STORE_URL, TOWN, TWO_CALLS, URL, case, run, wait_for_no_replies

set_tracing_disabled(True)
KINDS = (OpenAIResponsesModel, OpenAIChatCompletionsModel)
seen = []


class Town(BaseModel):
    town: str
    number: int


@function_tool
def look(at: str) -> str:
    """Looks somewhere."""
    seen.append(at)
    return f"crimson {len(seen)}"


def connect(url):
    return openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0, timeout=20)


def agent(kind, client=None, **more):
    client = client or connect(URL)
    return Agent(name="a", instructions="Be brief.", model=kind(MODEL, client), tools=[look], **more)


async def fails(error, asked):
    try:
        await asked
    except error as raised:
        return raised
    raise AssertionError(f"no {error.__name__}")


@case
async def tools_and_a_second_turn():
    for kind in KINDS:
        seen.clear()
        first = await Runner.run(agent(kind), TWO_CALLS)
        assert seen == PLACES and "crimson 1" in first.final_output and "crimson 2" in first.final_output
        second = await Runner.run(agent(kind), first.to_input_list() + [{"role": "user", "content": "say Again."}])
        assert second.final_output == "Again."


@case
async def streaming():
    for kind in KINDS:
        seen.clear()
        result = Runner.run_streamed(agent(kind), TWO_CALLS)
        events = [event async for event in result.stream_events()]
        assert seen == PLACES and "crimson 2" in result.final_output
        assert any(getattr(getattr(event, "data", None), "type", "") == "response.output_text.delta" for event in events)


@case
async def structured_output():
    for kind in KINDS:
        assert (await Runner.run(agent(kind, output_type=Town), TOWN)).final_output == Town(town="Oslo", number=3)


@case
async def arguments_that_do_not_fit_are_told_to_the_model():
    for kind in KINDS:
        seen.clear()
        result = await Runner.run(agent(kind), 'call look {"place": 7}\nthen\nsay Mended.')
        assert result.final_output == "Mended." and not seen


@case
async def errors():
    for kind in KINDS:
        await fails(openai.RateLimitError, Runner.run(agent(kind), "refuse rate-limit"))
        await fails(openai.InternalServerError, Runner.run(agent(kind), "say Hel\ncut"))
    refused = await fails(openai.BadRequestError, Runner.run(agent(KINDS[0]), "say x", conversation_id="conv_1"))
    assert refused.param == "conversation"


@case
async def a_conversation_that_the_proxy_keeps():
    client = connect(STORE_URL)
    conversation = (await client.conversations.create()).id
    seen.clear()
    first = await Runner.run(agent(KINDS[0], client), TWO_CALLS, conversation_id=conversation)
    assert seen == PLACES and "crimson 1" in first.final_output and "crimson 2" in first.final_output
    second = await Runner.run(agent(KINDS[0], client), "recall", conversation_id=conversation)
    assert "I look." in second.final_output and "crimson 2" in second.final_output
    session = OpenAIConversationsSession(openai_client=client)
    await Runner.run(agent(KINDS[0], client), "say My name is Bob.", session=session)
    third = await Runner.run(agent(KINDS[0], client), "recall", session=session)
    assert "My name is Bob." in third.final_output and len(await session.get_items()) == 4
    await session.clear_session()


@case
async def previous_responses_that_the_proxy_keeps():
    client = connect(STORE_URL)
    seen.clear()
    first = await Runner.run(agent(KINDS[0], client), TWO_CALLS, auto_previous_response_id=True)
    assert seen == PLACES and "crimson 2" in first.final_output
    second = await Runner.run(agent(KINDS[0], client), "recall", previous_response_id=first.last_response_id)
    assert "I look." in second.final_output and "crimson 2" in second.final_output


@case
async def cancelled():
    for kind in KINDS:
        result = Runner.run_streamed(agent(kind), "say x\nwait")
        async for event in result.stream_events():
            if getattr(getattr(event, "data", None), "type", "") == "response.output_text.delta":
                result.cancel()
    wait_for_no_replies()


run(f"openai-agents {version('openai-agents')}")
