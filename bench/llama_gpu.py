#!/usr/bin/env python3
"""A Llama of transformers whose attention is napkin's, beside the same model with torch's scaled_dot_product_attention, in one process.

    python3 bench/llama_gpu.py [--tiny] [--static] [--output bench/results/NAME.json]

Eight layers of 32 query heads over 8 key heads of 128 values, 4,096 wide, in bf16, with random weights. Twenty-four tokens are generated behind prompts of 1,000,
900 and 1,010 with a cache that grows, and eight prompts have lengths of their own. Each is measured at its first pass, in which lengths are new, and at later ones,
in turn with torch's. How many kernels were compiled and how many views were copied stands beside it. At each token both attentions get the tokens that torch's chose; where
their choices differ, the difference of the logits and torch's margin say whether rounding explains it.

`--tiny`: a small model in f32 on the processor, which shows that all of this works. `--static`: besides, generation by transformers' static cache and torch.compile.
Needs the Python package; without transformers it says so and measures nothing.
"""
import sys
import time

import gpu
import records
import torch

# Behind the second, code for such lengths is there; behind the third, they pass a power of two.
GENERATED = (1000, 900, 1010)
NEW_TOKENS, SEED = 24, 1
PROMPTS = (57, 130, 257, 511, 640, 1000, 1531, 2013)
REPEATS = 5


def llama(is_tiny, device):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(SEED)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 512}
    if not is_tiny:
        sizes = {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 8, "vocab_size": 32000}
    config = LlamaConfig(**sizes, max_position_embeddings=4096, attn_implementation="sdpa")
    with torch.device(device):
        return LlamaForCausalLM(config).to(torch.float32 if is_tiny else torch.bfloat16).eval()


class Race:
    """One model by both attentions."""

    def __init__(self, model, programs):
        self.model, self.programs = model, programs
        self.device = model.device

    def synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def counts(self):
        """How many kernels napkin compiled so far, and how many views its calls copied."""
        made = self.programs()
        return sum(program.codes for program in made), sum(program.copies for program in made)

    def prefill(self, attention, prompt):
        """Seconds, and the logits of the last token."""
        self.model.set_attn_implementation(attention)
        self.synchronize()
        begin = time.perf_counter()
        logits = self.model(prompt, use_cache=True, logits_to_keep=1).logits
        self.synchronize()
        return time.perf_counter() - begin, logits[:, -1]

    def generate(self, attention, prompt, count, forced=None):
        """Seconds until the first token and of the others together, and the logits at each. `forced`: the tokens that are taken."""
        from transformers import DynamicCache

        self.model.set_attn_implementation(attention)
        self.synchronize()
        begin = time.perf_counter()
        cache = DynamicCache(config=self.model.config)
        tokens, logits, first = prompt, [], 0.0
        for place in range(count):
            logits.append(self.model(tokens, cache=cache, use_cache=True, logits_to_keep=1).logits[:, -1])
            tokens = logits[-1].argmax(-1, keepdim=True) if forced is None else forced[:, place : place + 1]
            if place == 0:
                self.synchronize()
                first = time.perf_counter() - begin
        self.synchronize()
        return first, time.perf_counter() - begin - first, torch.stack(logits, 1)


def agreement(ours, theirs):
    """How far the logits are apart, how many of the choices are the same, and at those that are not the margin by which torch chose."""
    best = theirs.float().topk(2, -1)
    differ = ours.argmax(-1) != best.indices[..., 0]
    margins = (best.values[..., 0] - best.values[..., 1])[differ].tolist()
    return {"largest_difference": (ours.float() - theirs.float()).abs().max().item(), "largest_logit": theirs.float().abs().max().item(),
            "tokens": differ.numel(), "same_tokens": int((~differ).sum()), "margins_of_others": margins}


def said(row):
    of_margins = "".join(f", torch's margin {margin:.4f}" for margin in row["margins_of_others"])
    return f"{row['same_tokens']} of {row['tokens']} tokens the same{of_margins}; logits up to {row['largest_logit']:.2f}, apart {row['largest_difference']:.4f}"


def generation(race, prompt, count):
    """The first pass of each, and the medians of later ones, in turn."""
    before = race.counts()
    torch_first = race.generate("sdpa", prompt, count)
    forced = torch_first[2].argmax(-1)
    own_first = race.generate("napkin", prompt, count, forced)
    row = {"prompt": prompt.shape[1], "tokens": count, "first_pass": {"first_token_s": own_first[0], "later_tokens_s": own_first[1]},
           "torch_first_pass": {"first_token_s": torch_first[0], "later_tokens_s": torch_first[1]}, **agreement(own_first[2], torch_first[2])}
    passes = {"napkin": [], "sdpa": []}
    for _ in range(REPEATS):
        for attention, of in passes.items():
            of.append(race.generate(attention, prompt, count, forced)[:2])
    for name, attention in (("later_passes", "napkin"), ("torch_later_passes", "sdpa")):
        row[name] = {"first_token_s": records.median([one[0] for one in passes[attention]]), "later_tokens_s": records.median([one[1] for one in passes[attention]])}
    row["compiled"], row["copied_views"] = (after - of for after, of in zip(race.counts(), before))
    print(f"{count} tokens behind {row['prompt']}: {row['compiled']} compilations, {row['copied_views']} views copied; {said(row)}")
    for title, own, theirs in (("first pass", "first_pass", "torch_first_pass"), ("later passes", "later_passes", "torch_later_passes")):
        for part in ("first_token_s", "later_tokens_s"):
            print(f"  {title:12} {part[:-2].replace('_', ' '):12} {row[own][part] * 1e3:9.2f} ms ({row[theirs][part] * 1e3:9.2f})  {row[own][part] / row[theirs][part]:.3f} ×")
    return row


def prefill(race, prompt):
    """One length: its first call and later ones."""
    before = race.counts()
    torch_first, theirs = race.prefill("sdpa", prompt)
    first, ours = race.prefill("napkin", prompt)
    times = {"napkin": [], "sdpa": []}
    for _ in range(REPEATS):
        for attention, of in times.items():
            of.append(race.prefill(attention, prompt)[0])
    compiled, copied = (after - of for after, of in zip(race.counts(), before))
    row = {"prompt": prompt.shape[1], "compiled": compiled, "copied_views": copied, "first_call_s": first, "torch_first_call_s": torch_first,
           "seconds": records.median(times["napkin"]), "torch_seconds": records.median(times["sdpa"]), **agreement(ours, theirs)}
    print("prompt {prompt:5}  compiled {compiled}  first call {0:8.2f} ms ({1:8.2f})  then {2:7.2f} ms ({3:7.2f})  {4:.3f} ×  ".format(
        first * 1e3, torch_first * 1e3, row["seconds"] * 1e3, row["torch_seconds"] * 1e3, row["seconds"] / row["torch_seconds"], **row) + said(row), flush=True)
    return row


def static(race, prompt, count):
    """By transformers' own loop with a static cache, whose steps it compiles on a GPU. The tokens of both, and the time of a second run."""
    row, tokens = {}, {}
    for attention in ("sdpa", "napkin"):
        race.model.set_attn_implementation(attention)
        run = lambda: race.model.generate(prompt, max_new_tokens=count, do_sample=False, cache_implementation="static", pad_token_id=0)
        for _ in range(2):
            race.synchronize()
            begin = time.perf_counter()
            tokens[attention] = run()
            race.synchronize()
            row[attention + "_seconds"] = time.perf_counter() - begin
    row["same_tokens"] = int((tokens["sdpa"] == tokens["napkin"]).sum()) - prompt.shape[1]
    print(f"static cache: {row['napkin_seconds'] * 1e3:.2f} ms ({row['sdpa_seconds'] * 1e3:.2f}), {row['same_tokens']} of {count} tokens the same")
    return row


def main():
    options = gpu.parser(__doc__)
    options.add_argument("--tiny", action="store_true")
    options.add_argument("--static", action="store_true")
    options = options.parse_args()
    try:
        import transformers
    except ImportError:
        sys.exit("llama_gpu.py: skipped: transformers is not installed")
    import napkin.transformers
    device = "cpu" if options.tiny else "cuda"
    race = Race(llama(options.tiny, device), napkin.transformers.programs)
    vocabulary = race.model.config.vocab_size
    draw = lambda length: torch.randint(vocabulary, (1, length), generator=torch.Generator().manual_seed(length)).to(device)
    few = options.tiny
    rows = {}
    with torch.inference_mode():
        race.prefill("sdpa", draw(64))  # what torch loads once
        print("torch's in brackets")
        rows["generation"] = [generation(race, draw(length), 3 if few else NEW_TOKENS) for length in ((40, 35) if few else GENERATED)]
        rows["prompts"] = [prefill(race, draw(length)) for length in (PROMPTS[:2] if few else PROMPTS)]
        print(f"prompts: {sum(row['compiled'] for row in rows['prompts'])} compilations")
        if options.static:
            try:
                rows["static"] = static(race, draw(40 if few else GENERATED[0]), 3 if few else NEW_TOKENS)
            except Exception as error:  # noqa: BLE001: what is measured so far is kept
                rows["static"] = {"error": str(error)}
                print(f"static cache: {error}", file=sys.stderr)
    print("in all: {} compilations, {} views copied".format(*race.counts()))
    gpu.write(options, "napkin.llama/1", "processor" if options.tiny else torch.cuda.get_device_name(0), transformers=transformers.__version__, torch=torch.__version__, **rows)


if __name__ == "__main__":
    main()
