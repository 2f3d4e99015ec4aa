"""openai_client.py URL MODEL | openai_client.py --serve WEFT MODEL - what PyPI's openai client does with the server.

Forms are looked at, not what a model says. An echo (http_echo) says what it is told; a model is kept to the form by a grammar."""
import enum
import json
import sys

import openai
import pydantic

import openai_params
from server import Server

SAY = [{"role": "user", "content": "one two three"}]
ASK_CALL = [{"role": "user", "content": "call"}]
CITY = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Bern", "Basel"]}}, "required": ["city"],
        "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "of a city", "parameters": CITY}}]


class City(str, enum.Enum):
    bern = "Bern"
    basel = "Basel"


class Street(pydantic.BaseModel):
    number: int


class Place(pydantic.BaseModel):
    """With a reference, as nested classes have it."""
    city: City
    street: Street


PLACE = '{"city": "Bern", "street": {"number": 7}}'


def chats(client, model, real):
    r = client.chat.completions.create(model=model, messages=SAY, max_tokens=8, seed=1, temperature=0)
    assert r.choices[0].message.role == "assistant" and isinstance(r.choices[0].message.content, str), r
    assert r.choices[0].finish_reason in ("stop", "length") and r.usage.prompt_tokens > 0, r
    whole = r.choices[0].message.content
    text, usage, reasons = "", None, []
    for chunk in client.chat.completions.create(model=model, messages=SAY, max_tokens=8, seed=1, temperature=0, stream=True,
                                                stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for c in chunk.choices:
            text += c.delta.content or ""
            reasons += [c.finish_reason] if c.finish_reason else []
    assert text == whole and len(reasons) == 1 and usage.completion_tokens > 0, (text, whole, reasons, usage)
    r = client.chat.completions.create(model=model, messages=SAY, max_tokens=3, n=2, logprobs=True, top_logprobs=2,
                                       stop=["zzz"], logit_bias={"7": -100}, presence_penalty=0.5, frequency_penalty=0.5,
                                       top_p=0.9, user="someone", safety_identifier="x", prompt_cache_key="y")
    assert len(r.choices) == 2 and len(r.choices[0].logprobs.content) >= 1, r
    if real:
        assert len(r.choices[0].logprobs.content[0].top_logprobs) == 2, r
    # A stream that is left early: the server cancels, and goes on with others.
    stream = client.chat.completions.create(model=model, messages=SAY, max_tokens=400, stream=True)
    next(iter(stream))
    stream.close()


def tools(client, model, real):
    ask = {"model": model, "messages": ASK_CALL, "max_tokens": 300, "temperature": 0}
    for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
        r = client.chat.completions.create(**ask, tools=TOOLS, tool_choice=choice)
        call = r.choices[0].message.tool_calls[0]
        assert r.choices[0].finish_reason == "tool_calls" and call.function.name == "weather", r
        assert json.loads(call.function.arguments) in ({"city": "Bern"}, {"city": "Basel"}), r
    again = ASK_CALL + [r.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    client.chat.completions.create(model=model, messages=again, tools=TOOLS, tool_choice="none", max_tokens=4)
    name, arguments, reason = "", "", None
    for chunk in client.chat.completions.create(**ask, tools=TOOLS, tool_choice="required", stream=True):
        for c in chunk.choices:
            reason = c.finish_reason or reason
            for call in c.delta.tool_calls or []:
                name += call.function.name or ""
                arguments += call.function.arguments or ""
    assert (name, reason) == ("weather", "tool_calls") and "city" in json.loads(arguments), (name, arguments)
    if real:  # a class as a tool is strict, and its arguments come back as one
        r = client.chat.completions.parse(**ask, tools=[openai.pydantic_function_tool(Place)], tool_choice="required")
        got = r.choices[0].message.tool_calls[0].function.parsed_arguments
        assert isinstance(got, Place), r
        expect(openai.BadRequestError, "strict", lambda: client.chat.completions.create(
            **ask, tools=[openai.pydantic_function_tool(Place)]))


def forms(client, model, real):
    ask = {"model": model, "messages": [{"role": "user", "content": PLACE}], "max_tokens": 300, "temperature": 0}
    r = client.chat.completions.parse(**ask, response_format=Place)
    assert isinstance(r.choices[0].message.parsed, Place), r
    with client.chat.completions.stream(**ask, response_format=Place) as stream:
        for _ in stream:
            pass
        assert isinstance(stream.get_final_completion().choices[0].message.parsed, Place)
    r = client.responses.parse(model=model, input=PLACE, max_output_tokens=300, temperature=0, text_format=Place)
    assert isinstance(r.output_parsed, Place), r
    if real:
        r = client.chat.completions.create(**ask, extra_body={"regex": "[ab]{3}"})
        assert len(r.choices[0].message.content) == 3 and not set(r.choices[0].message.content) - set("ab"), r
        expect(openai.BadRequestError, "response_format", lambda: client.chat.completions.create(
            **ask, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}}))


def others(client, model, real):
    r = client.completions.create(model=model, prompt=["a b", "c"], max_tokens=4)
    assert len(r.choices) == 2, r
    r = client.completions.create(model=model, prompt="a b", max_tokens=4, n=2, best_of=3)
    assert len(r.choices) == 2, r
    assert "".join(c.choices[0].text for c in client.completions.create(
        model=model, prompt="a b", max_tokens=4, stream=True) if c.choices), "a stream of text"
    r = client.responses.create(model=model, input="one two", instructions="be brief", max_output_tokens=8, metadata={"a": "b"})
    assert isinstance(r.output_text, str) and r.metadata == {"a": "b"} and r.usage.output_tokens > 0, r
    kinds = [e.type for e in client.responses.create(model=model, input="one two", max_output_tokens=8, stream=True)]
    assert kinds[0] == "response.created" and kinds[-1] in ("response.completed", "response.incomplete"), kinds
    assert model in [m.id for m in client.models.list()] and client.models.retrieve(model).id == model
    r = client.embeddings.create(model=model, input=["a", "b"])  # as base64, which the client asks for
    assert len(r.data) == 2 and len(r.data[0].embedding) > 1, r
    f = client.embeddings.create(model=model, input="a", encoding_format="float").data[0].embedding
    assert abs(f[0] - r.data[0].embedding[0]) < 1e-4, (f[0], r)


def expect(kind, words, fn):
    try:
        fn()
    except kind as e:
        assert words in f"{e} {e.body}" and e.body["message"] and "code" in e.body, (words, e.body)
        return
    raise AssertionError(f"{words}: no {kind.__name__}")


def errors(client, model, real):
    def chat(**more):
        return lambda: client.chat.completions.create(**{"model": model, "messages": SAY, "max_tokens": 2, **more})

    expect(openai.NotFoundError, model, chat(model="nobody"))
    expect(openai.NotFoundError, model, lambda: client.models.retrieve("nobody"))
    expect(openai.BadRequestError, "temperature", chat(temperature=9))
    expect(openai.BadRequestError, "nonsense", chat(extra_body={"nonsense": 1}))
    expect(openai.BadRequestError, "store", chat(store=True))
    for part in ({"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
                 {"type": "file", "file": {"file_id": "x"}}):
        expect(openai.BadRequestError, part["type"], chat(messages=[{"role": "user", "content": [part]}]))
    if real:
        expect(openai.BadRequestError, "reasoning_effort", chat(reasoning_effort="high"))
        expect(openai.BadRequestError, "tools", chat(tools=TOOLS))
        expect(openai.BadRequestError, "context", chat(messages=[{"role": "user", "content": "long " * 3000}]))


LEAST = {"CHAT": ("/chat/completions", {"messages": SAY, "max_tokens": 1}), "COMPLETION": ("/completions", {"prompt": "a", "max_tokens": 1}),
         "EMBEDDING": ("/embeddings", {"input": "a"}), "RESPONSE": ("/responses", {"input": "a", "max_output_tokens": 1})}


def parameters(client, model, real):
    """Every parameter that this client has, with a value of no sense: the server refuses that value by name, so it knows the field."""
    for kind, params in openai_params.KINDS:
        path, least = LEAST[kind]
        for name in openai_params.names(params):
            try:
                client.post(path, body={"model": model, **least, name: [[{"x": 1}]]}, cast_to=object)
                raise AssertionError(f"{path}: {name} was ignored")
            except openai.APIStatusError as e:
                assert e.status_code == 400 and e.body["param"].startswith(name) and e.body["code"] != "W1822", (path, name, e.body)


def run(url, model, real):
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60)
    for part in (chats, tools, forms, others, errors, parameters):
        part(client, model, real)
    print("openai", openai.__version__, "is content")


if sys.argv[1] == "--serve":
    with Server(sys.argv[2], "-m", sys.argv[3], "-c", "512", "-np", "4", "--chat-template", "chatml", "--embeddings") as s:
        run(s.url + "/v1", s.model, True)
else:
    run(sys.argv[1], sys.argv[2], False)
