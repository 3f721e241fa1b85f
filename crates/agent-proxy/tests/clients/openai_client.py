"""The official OpenAI package against the proxy: `openai_client.py PROGRAM`, where PROGRAM is scripted_backend."""

import json

import openai

from parrot import KEY, MODEL as M, PLACES, STORE_URL, TWO_CALLS, URL, case, expect, run, wait_for_no_replies

client = openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0, timeout=20)
LOOK = {
    "type": "function",
    "name": "look",
    "description": "Looks somewhere.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
    "strict": False,
}
CHAT_LOOK = {"type": "function", "function": {key: LOOK[key] for key in ("name", "description", "parameters")}}


def calls(response):
    return [item for item in response.output if item.type == "function_call"]


def check_two_calls(response):
    assert response.status == "completed", response
    assert response.output_text == "I look."
    assert [json.loads(call.arguments)["at"] for call in calls(response)] == PLACES
    assert len({call.call_id for call in calls(response)}) == 2
    assert response.usage.total_tokens == 18


@case
def responses_create():
    response = client.responses.create(model=M, input="say Hëllo.", metadata={"a": "b"}, instructions="Be brief.")
    assert (response.output_text, response.status, response.metadata) == ("Hëllo.", "completed", {"a": "b"})
    assert response.instructions == "Be brief." and response.model == M
    raw = client.responses.with_raw_response.create(model=M, input="say x")
    assert raw.request_id.startswith("req_")


@case
def responses_create_stream():
    events = list(client.responses.create(model=M, input=TWO_CALLS, tools=[LOOK], stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    check_two_calls(events[-1].response)


@case
def responses_stream():
    with client.responses.stream(model=M, input=TWO_CALLS, tools=[LOOK]) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text == "I look."
    check_two_calls(final)


@case
def responses_round_trip():
    conversation = [{"role": "user", "content": TWO_CALLS}]
    first = client.responses.create(model=M, input=conversation, tools=[LOOK])
    check_two_calls(first)
    conversation += first.output
    for number, call in enumerate(calls(first)):
        conversation.append({"type": "function_call_output", "call_id": call.call_id, "output": f"crimson {number}"})
    with client.responses.stream(model=M, input=conversation, tools=[LOOK]) as stream:
        for _ in stream:
            pass
        second = stream.get_final_response()
    assert "crimson 0" in second.output_text and "crimson 1" in second.output_text, second.output_text
    assert not calls(second)


@case
def responses_truncated():
    response = client.responses.create(model=M, input="say Hel\nlength")
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")


@case
def responses_failures():
    for script in ("say Hel\nfail", "say Hel\ncut"):
        events = list(client.responses.create(model=M, input=script, stream=True))
        assert events[-1].type == "response.failed" and events[-1].response.error.code == "server_error"
        expect(openai.InternalServerError, lambda: client.responses.create(model=M, input=script))
        with client.responses.stream(model=M, input=script) as stream:
            assert [event for event in stream][-1].type == "response.failed"
            expect(RuntimeError, stream.get_final_response)


@case
def chat_create():
    question = [{"role": "user", "content": TWO_CALLS}]
    answer = client.chat.completions.create(model=M, messages=question, tools=[CHAT_LOOK])
    choice = answer.choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I look.")
    assert answer.usage.total_tokens == 18
    made = choice.message.tool_calls
    assert [json.loads(call.function.arguments)["at"] for call in made] == PLACES
    results = [{"role": "tool", "tool_call_id": call.id, "content": "crimson"} for call in made]
    answer = client.chat.completions.create(model=M, messages=question + [choice.message] + results, tools=[CHAT_LOOK])
    assert answer.choices[0].message.content.count("crimson") == 2 and answer.choices[0].finish_reason == "stop"


@case
def chat_stream():
    question = [{"role": "user", "content": TWO_CALLS}]
    asked = {"model": M, "messages": question, "tools": [CHAT_LOOK], "stream_options": {"include_usage": True}}
    chunks = list(client.chat.completions.create(stream=True, **asked))
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]][-1] == "tool_calls"
    assert not chunks[-1].choices and chunks[-1].usage.total_tokens == 18
    with client.chat.completions.stream(**asked) as stream:
        for _ in stream:
            pass
        message = stream.get_final_completion().choices[0].message
    assert message.content == "I look."
    assert [json.loads(call.function.arguments)["at"] for call in message.tool_calls] == PLACES


@case
def chat_failures():
    for script in ("say Hel\nfail", "say Hel\ncut"):
        question = [{"role": "user", "content": script}]
        expect(openai.APIError, lambda: list(client.chat.completions.create(model=M, messages=question, stream=True)))
    question = [{"role": "user", "content": "say Hel\nlength"}]
    assert client.chat.completions.create(model=M, messages=question).choices[0].finish_reason == "length"


@case
def errors_before_the_reply():
    for kind, error in (
        ("rate-limit", openai.RateLimitError),
        ("authentication", openai.InternalServerError),
        ("context-too-long", openai.BadRequestError),
        ("unavailable", openai.InternalServerError),
    ):
        for stream in (False, True):
            expect(error, lambda: client.responses.create(model=M, input=f"refuse {kind}", stream=stream))
            question = [{"role": "user", "content": f"refuse {kind}"}]
            expect(error, lambda: client.chat.completions.create(model=M, messages=question, stream=stream))
    perhaps = {"model": M, "input": "say x", "tool_choice": "perhaps"}
    wrong = expect(openai.BadRequestError, lambda: client.responses.create(**perhaps))
    assert wrong.param == "tool_choice" and wrong.type == "invalid_request_error"
    gone = expect(openai.NotFoundError, lambda: client.responses.create(model="gone", input="say x"))
    assert gone.code == "model_not_found"
    stranger = openai.OpenAI(base_url=URL, api_key="another key", max_retries=0)
    expect(openai.AuthenticationError, lambda: stranger.responses.create(model=M, input="say x"))


@case
def models():
    assert [model.id for model in client.models.list()] == [M] and client.models.retrieve(M).id == M


@case
def what_is_not_supported_is_refused():
    reference = [{"role": "user", "content": "say x"}, {"type": "item_reference", "id": "msg_1"}]
    picture = [{"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/x.png"}]}]
    for param, asked in (
        ("conversation", {"input": "say x", "conversation": "conv_1"}),
        ("background", {"input": "say x", "background": True}),
        ("previous_response_id", {"input": "say x", "previous_response_id": "resp_1"}),
        ("input[1].id", {"input": reference}),
        ("input[0].content[0].type", {"input": picture}),
    ):
        assert expect(openai.BadRequestError, lambda: client.responses.create(model=M, **asked)).param == param
    question = {"model": M, "messages": [{"role": "user", "content": "say x"}]}
    functions = [{"name": "look", "parameters": {"type": "object"}}]
    wrong = expect(openai.BadRequestError, lambda: client.chat.completions.create(functions=functions, **question))
    assert wrong.param == "functions"


@case
def what_is_stored_is_found_again():
    store = openai.OpenAI(base_url=STORE_URL, api_key=KEY, max_retries=0, timeout=20)
    first = store.responses.create(model=M, input="say My name is Bob.")
    second = store.responses.create(model=M, input="recall", previous_response_id=first.id)
    assert "My name is Bob." in second.output_text and second.previous_response_id == first.id
    with store.responses.stream(model=M, input="recall", previous_response_id=second.id) as stream:
        for _ in stream:
            pass
        assert stream.get_final_response().output_text.count("My name is Bob.") == 4
    assert store.responses.retrieve(first.id) == first
    store.responses.delete(first.id)
    expect(openai.NotFoundError, lambda: store.responses.retrieve(first.id))
    gone = expect(
        openai.BadRequestError, lambda: store.responses.create(model=M, input="x", previous_response_id=first.id)
    )
    assert (gone.param, gone.code) == ("previous_response_id", "previous_response_not_found")
    reference = [{"type": "item_reference", "id": second.output[0].id}, {"role": "user", "content": "recall"}]
    assert "My name is Bob." in store.responses.create(model=M, input=reference).output_text


@case
def conversations():
    store = openai.OpenAI(base_url=STORE_URL, api_key=KEY, max_retries=0, timeout=20)
    begin = [{"type": "message", "role": "user", "content": "say My name is Bob."}]
    conversation = store.conversations.create(items=begin, metadata={"a": "b"})
    assert store.conversations.retrieve(conversation.id) == conversation and conversation.metadata == {"a": "b"}
    response = store.responses.create(model=M, input="recall", conversation=conversation.id)
    assert "My name is Bob." in response.output_text and response.conversation.id == conversation.id
    # Page by page.
    items = list(store.conversations.items.list(conversation.id, limit=2, order="asc"))
    assert [item.role for item in items] == ["user", "user", "assistant"]
    assert items[0].content[0].text == "say My name is Bob." and items[2].id == response.output[0].id
    added = store.conversations.items.create(conversation.id, items=[{"role": "user", "content": "say More."}])
    assert store.conversations.items.retrieve(added.data[0].id, conversation_id=conversation.id) == added.data[0]
    store.conversations.items.delete(added.data[0].id, conversation_id=conversation.id)
    assert store.conversations.delete(conversation.id).deleted
    expect(openai.NotFoundError, lambda: store.conversations.retrieve(conversation.id))


@case
def stop_sequences():
    question = {"model": M, "messages": [{"role": "user", "content": "say Act: a Observation: invented"}]}
    answer = client.chat.completions.create(stop=["Observation:"], **question).choices[0]
    assert (answer.finish_reason, answer.message.content) == ("stop", "Act: a ")
    chunks = client.chat.completions.create(stop="Observation:", stream=True, **question)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Act: a "


@case
def cancelled():
    stream = client.responses.create(model=M, input="say x\nwait", stream=True)
    next(event for event in stream if event.type == "response.output_text.delta")
    stream.close()
    question = [{"role": "user", "content": "say x\nwait"}]
    stream = client.chat.completions.create(model=M, messages=question, stream=True)
    next(chunk for chunk in stream if chunk.choices[0].delta.content)
    stream.close()
    wait_for_no_replies()


run(f"openai {openai.__version__}")
