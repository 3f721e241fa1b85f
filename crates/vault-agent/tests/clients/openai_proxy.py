"""OpenAI's own Python package against `vault-agent proxy --with-vault-tools`, over a model that does as it is told.

Usage: openai_proxy.py PROGRAM
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai

PROGRAM = os.path.abspath(sys.argv[1])
ASKED = []


class Model(BaseHTTPRequestHandler):
    """Searches for what the person says, then says what the notes say; asks for the weather when it is mentioned."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        ASKED.append(body)
        last = body["messages"][-1]
        text = content(last)
        if last["role"] == "tool":
            pieces = [{"content": "The notes say: "}, {"content": text}]
        elif "weather" in text:
            pieces = [call("weather", {"day": "today"})]
        else:
            pieces = [call("search_notes", {"query": text})]
        finish = "tool_calls" if "tool_calls" in pieces[-1] else "stop"
        chunks = [{"index": 0, "delta": piece, "finish_reason": None} for piece in pieces]
        chunks.append({"index": 0, "delta": {}, "finish_reason": finish})
        lines = [json.dumps({"choices": [chunk]}) for chunk in chunks]
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        lines += [json.dumps({"choices": [], "usage": usage}), "[DONE]"]
        answer = "".join(f"data: {line}\n\n" for line in lines).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def content(message):
    said = message["content"]
    return said if isinstance(said, str) else "".join(part["text"] for part in said)


def call(name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": 0, "id": f"call_{len(ASKED)}", "type": "function", "function": function}]}


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()

home = tempfile.mkdtemp()
vault = os.path.join(home, "Notes")
os.mkdir(vault)
with open(os.path.join(vault, "Roses.md"), "w") as note:
    note.write("# Roses\n\nPrune the roses in late winter.\n")
key_file = os.path.join(home, "key")
with open(key_file, "w") as file:
    file.write("key-of-the-proxy\n")

env = {"PATH": os.environ["PATH"], "HOME": home}
env.update(VAULT_AGENT_PROVIDER=f"http://127.0.0.1:{server.server_port}/v1", VAULT_AGENT_MODEL="scripted")
arguments = ["proxy", "--with-vault-tools", "--http", "127.0.0.1:0", "--key-file", key_file]
arguments += ["--vault", vault, "--context-length", "32768"]
proxy = subprocess.Popen([PROGRAM, *arguments], env=env, stderr=subprocess.PIPE, text=True)
try:
    for line in proxy.stderr:
        if line.startswith("note: listening on "):
            address = line.removeprefix("note: listening on ").strip()
            break
    threading.Thread(target=proxy.stderr.read, daemon=True).start()
    client = openai.OpenAI(base_url=address, api_key="key-of-the-proxy", max_retries=0)

    # Which models there are.
    models = client.models.list().data
    assert [model.id for model in models] == ["scripted"], models
    assert client.models.retrieve("scripted").context_length == 32768
    try:
        openai.OpenAI(base_url=address, api_key="another", max_retries=0).models.list()
        raise AssertionError("another key")
    except openai.AuthenticationError:
        pass

    # Embeddings: this client asks for base64 by itself.
    texts = ["prune the roses", "cut back rose bushes", "tax returns"]
    answer = client.embeddings.create(model="minilm", input=texts)
    vectors = [entry.embedding for entry in answer.data]
    assert [entry.index for entry in answer.data] == [0, 1, 2] and answer.usage.total_tokens > 0
    assert all(math.isclose(sum(x * x for x in vector), 1, abs_tol=1e-4) for vector in vectors)
    dot = lambda a, b: sum(x * y for x, y in zip(a, b))
    assert dot(vectors[0], vectors[1]) > dot(vectors[0], vectors[2]) + 0.2
    as_floats = client.embeddings.create(model="minilm", input=texts[0], encoding_format="float", dimensions=384)
    assert max(abs(a - b) for a, b in zip(as_floats.data[0].embedding, vectors[0])) < 1e-6
    for wrong in ({"dimensions": 10}, {"input": [[1, 2, 3]]}, {"input": "word " * 400}):
        try:
            client.embeddings.create(**{"model": "minilm", "input": "x", **wrong})
            raise AssertionError(wrong)
        except openai.BadRequestError:
            pass
    try:
        client.embeddings.create(model="text-embedding-3-small", input="x")
        raise AssertionError("another model")
    except openai.NotFoundError as error:
        assert "minilm" in str(error)

    # A conversation of which the searches are made inside: streamed, over Chat Completions.
    messages = [{"role": "system", "content": "Be brief."}]
    for turn in range(3):
        messages.append({"role": "user", "content": "when do I prune roses?"})
        before = len(ASKED)
        with client.chat.completions.stream(model="scripted", messages=messages) as stream:
            completion = stream.get_final_completion()
        message = completion.choices[0].message
        assert "late winter" in message.content and not message.tool_calls, message
        assert completion.choices[0].finish_reason == "stop" and len(ASKED) == before + 2
        messages.append({"role": "assistant", "content": message.content})
    offered = {tool["function"]["name"] for tool in ASKED[-1]["tools"]}
    assert "search_notes" in offered and not offered & {"write_note", "edit_note", "delete_note"}, offered
    assert content(ASKED[-1]["messages"][0]).endswith("Be brief.")

    # The same over the Responses API.
    with client.responses.stream(model="scripted", input="when do I prune roses?") as stream:
        response = stream.get_final_response()
    assert response.status == "completed" and "late winter" in response.output_text, response
    assert [item.type for item in response.output] == ["message"]
    assert response.usage.total_tokens == 30, response.usage

    # A tool of the client is the client's.
    weather = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}, "strict": False}
    asked = {"role": "user", "content": "what is the weather?"}
    first = client.responses.create(model="scripted", input=[asked], tools=[weather])
    [made] = [item for item in first.output if item.type == "function_call"]
    assert made.name == "weather" and json.loads(made.arguments) == {"day": "today"}
    result = {"type": "function_call_output", "call_id": made.call_id, "output": "dry and mild"}
    last = client.responses.create(model="scripted", input=[asked, *first.output, result], tools=[weather])
    assert last.output_text == "The notes say: dry and mild", last.output_text
finally:
    proxy.terminate()
assert proxy.wait(timeout=10) == 0, "it ends by itself when it is asked to"
print("openai-python: models, embeddings and conversations over the proxy")
