"""openai_client.py URL MODEL - what PyPI's openai client does with the server. It looks at forms, not at what a model says."""
import sys
import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0, timeout=60)
model = sys.argv[2]
say = [{"role": "user", "content": "one two three"}]

r = client.chat.completions.create(model=model, messages=say, max_tokens=8, seed=1, temperature=0)
assert r.choices[0].message.role == "assistant" and isinstance(r.choices[0].message.content, str), r
assert r.choices[0].finish_reason in ("stop", "length") and r.usage.prompt_tokens > 0, r
whole = r.choices[0].message.content

text, usage, reasons = "", None, []
for chunk in client.chat.completions.create(model=model, messages=say, max_tokens=8, seed=1, temperature=0, stream=True,
                                            stream_options={"include_usage": True}):
    usage = chunk.usage or usage
    for c in chunk.choices:
        text += c.delta.content or ""
        reasons += [c.finish_reason] if c.finish_reason else []
assert text == whole and len(reasons) == 1 and usage.completion_tokens > 0, (text, whole, reasons, usage)

r = client.chat.completions.create(model=model, messages=say, max_tokens=3, n=2, logprobs=True, top_logprobs=2)
assert len(r.choices) == 2 and len(r.choices[0].logprobs.content) >= 1, r

tools = [{"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]
r = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "call"}], tools=tools, tool_choice="required", max_tokens=64)
call = r.choices[0].message.tool_calls[0]
assert r.choices[0].finish_reason == "tool_calls" and call.function.name == "weather", r
again = [{"role": "user", "content": "call"}, r.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
client.chat.completions.create(model=model, messages=again, tools=tools, max_tokens=4)

try: # structured output by a class; an echo says what it is told, a model has to be kept to the form
    import pydantic

    class Place(pydantic.BaseModel):
        city: str

    r = client.chat.completions.parse(model=model, messages=[{"role": "user", "content": '{"city": "Bern"}'}], response_format=Place, max_tokens=64)
    assert r.choices[0].finish_reason == "length" or isinstance(r.choices[0].message.parsed.city, str), r
except openai.LengthFinishReasonError:
    pass # a small model may write a very long name

r = client.completions.create(model=model, prompt=["a b", "c"], max_tokens=4)
assert len(r.choices) == 2, r
r = client.responses.create(model=model, input="one two", max_output_tokens=8)
assert isinstance(r.output_text, str), r
kinds = [e.type for e in client.responses.create(model=model, input="one two", max_output_tokens=8, stream=True)]
assert kinds[0] == "response.created" and kinds[-1] in ("response.completed", "response.incomplete"), kinds
assert model in [m.id for m in client.models.list()]

try:
    r = client.embeddings.create(model=model, input=["a", "b"])
    assert len(r.data) == 2 and len(r.data[0].embedding) > 1, r
except openai.BadRequestError as e:
    assert "--embeddings" in str(e), e

for wrong, want in [({"model": "nobody"}, openai.NotFoundError), ({"temperature": 9}, openai.BadRequestError),
                    ({"extra_body": {"nonsense": 1}}, openai.BadRequestError)]:
    try:
        client.chat.completions.create(**{"model": model, "messages": say, **wrong})
        raise AssertionError(wrong)
    except want as e:
        assert e.body["message"] and "code" in e.body, e.body
print("openai", openai.__version__, "is content")
