"""LangChain against the proxy, over both APIs: `langchain_client.py PROGRAM`, where PROGRAM is scripted_backend."""

from importlib.metadata import version

import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from parrot import KEY, MODEL, PLACES, TOWN, TWO_CALLS, URL, case, expect, run, wait_for_no_replies


class Town(BaseModel):
    """A town."""

    town: str
    number: int


@tool
def look(at: str) -> str:
    """Looks somewhere."""
    return f"crimson {at}"


def models(**more):
    for is_responses in (True, False):
        options = {"base_url": URL, "api_key": KEY, "max_retries": 0, "timeout": 20, **more}
        yield ChatOpenAI(model=MODEL, use_responses_api=is_responses, **options)


@case
def tools_and_a_second_turn():
    for model in models():
        model = model.bind_tools([look])
        conversation = [HumanMessage(TWO_CALLS)]
        first = model.invoke(conversation)
        assert first.text == "I look." and [call["args"]["at"] for call in first.tool_calls] == PLACES
        conversation += [first] + [look.invoke(call) for call in first.tool_calls]
        assert all(isinstance(message, ToolMessage) for message in conversation[2:])
        second = model.invoke(conversation)
        assert second.text.count("crimson") == 2 and not second.tool_calls
        assert model.invoke(conversation + [second, HumanMessage("say Again.")]).text == "Again."


@case
def streaming():
    for model in models():
        chunks = list(model.bind_tools([look]).stream(TWO_CALLS))
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole = whole + chunk
        assert len(chunks) > 2 and whole.text == "I look."
        assert [call["args"]["at"] for call in whole.tool_calls] == PLACES


@case
def structured_output():
    for model in models():
        assert model.with_structured_output(Town).invoke(TOWN) == Town(town="Oslo", number=3)
        assert model.with_structured_output(None, method="json_mode").invoke(TOWN) == {"town": "Oslo", "number": 3}
        by_tool = 'call Town {"town": "Oslo", "number": 3}'
        assert model.with_structured_output(Town, method="function_calling").invoke(by_tool).town == "Oslo"
        forced = model.with_structured_output(Town, method="function_calling")
        expect(openai.InternalServerError, lambda: forced.invoke("say I do not call."))


@case
def stop_sequences():
    model = list(models(stop_sequences=["Observation:"]))[1]
    assert model.invoke("say Act: a Observation: invented").text == "Act: a "


@case
def errors():
    for model in models():
        expect(openai.RateLimitError, lambda: model.invoke("refuse rate-limit"))
        expect(openai.BadRequestError, lambda: model.invoke("refuse context-too-long"))
        expect(openai.InternalServerError, lambda: model.invoke("say Hel\ncut"))
        picture = [{"type": "text", "text": "say x"}, {"type": "image_url", "image_url": {"url": "https://example.org/x"}}]
        expect(openai.BadRequestError, lambda: model.invoke([HumanMessage(picture)]))


@case
def cancelled():
    for model in models():
        stream = model.stream("say Hëllo you.\nwait")
        next(chunk for chunk in stream if chunk.text)
        stream.close()
    wait_for_no_replies()


run(f"langchain-openai {version('langchain-openai')}")
