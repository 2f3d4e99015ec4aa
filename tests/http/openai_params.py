"""openai_params.py - the parameters of PyPI's openai client, as rows of openai_params.def: openai_params.py > openai_params.def"""
import openai
from openai.types import completion_create_params as completion, embedding_create_params as embedding
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as response

KINDS = (("CHAT", chat.CompletionCreateParamsBase), ("COMPLETION", completion.CompletionCreateParamsBase),
         ("EMBEDDING", embedding.EmbeddingCreateParams), ("RESPONSE", response.ResponseCreateParamsBase))


def names(params):
    """Of a typed dict; `stream` stands in those made of the base."""
    return sorted(set(params.__annotations__) | ({"stream"} if params.__name__.endswith("Base") else set()))


if __name__ == "__main__":
    print(f"/* openai_params.def - every parameter of PyPI's openai {openai.__version__}, by route; written by openai_params.py. */")
    for kind, params in KINDS:
        for name in names(params):
            print(f"{kind}({name})")
    for kind, _ in KINDS:
        print(f"#undef {kind}")
