"""bench_tokenize.py TOKENIZER TEXT - the package's part of bench_tokenize: prints nanoseconds and ids.

TEXT holds documents, each ended by a NUL."""
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file(sys.argv[1])
with open(sys.argv[2], encoding="utf-8", newline="") as f:
    documents = f.read().split("\0")[:-1]
begin = time.perf_counter_ns()
n = 0
for document in documents:
    n += len(tokenizer.encode(document, add_special_tokens=False).ids)
print(time.perf_counter_ns() - begin, n)
