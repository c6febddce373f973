"""Models of transformers with napkin's attention, beside their own, on the processor and on a GPU where there is one.

Skipped where there is no torch or no transformers.
"""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import napkin.transformers

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.2,  # so that scores are of the order of 1
    "vocab_size": 50,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}
WINDOW = {"sliding_window": 5}
MODELS = {
    "Llama": {},
    "Qwen2": {"use_sliding_window": True, "max_window_layers": 1, **WINDOW},
    "Qwen3": {},
    "Mistral": WINDOW,
    "Gemma2": {"query_pre_attn_scalar": 5, "attn_logit_softcapping": 3.0, **WINDOW},
    "Gemma3Text": {"query_pre_attn_scalar": 8, **WINDOW},
    "GptOss": {"num_local_experts": 2, "num_experts_per_tok": 1, **WINDOW},
}
ENCODERS = {"Bert": {}, "ModernBert": {"local_attention": 5}}
BATCH, LENGTH = 2, 9


def made(name, more=None, auto=transformers.AutoModelForCausalLM):
    torch.manual_seed(1)
    config = getattr(transformers, name + "Config")(**{**SMALL, **(MODELS.get(name, {}) if more is None else more)})
    model = auto.from_config(config, attn_implementation="eager").eval().to(DEVICE)
    for parameter_name, parameter in model.named_parameters():
        if parameter_name.endswith("sinks"):
            torch.nn.init.normal_(parameter)
    return model.requires_grad_(False)


def prompt(padded=True):
    tokens = torch.randint(2, 50, (BATCH, LENGTH), generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(tokens)
    if padded:
        mask[1, :3] = 0
    return {"input_ids": tokens.to(DEVICE), "attention_mask": mask.to(DEVICE)}


def by(model, attention, call):
    model.set_attn_implementation(attention)
    return call()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_logits(name, padded):
    model, inputs = made(name), prompt(padded)
    wanted, found = (by(model, attention, lambda: model(**inputs).logits) for attention in ("eager", "napkin"))
    kept = inputs["attention_mask"].bool()
    torch.testing.assert_close(found[kept], wanted[kept], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders(name):
    model, inputs = made(name, ENCODERS[name], transformers.AutoModel), prompt()
    wanted, found = (by(model, attention, lambda: model(**inputs)[0]) for attention in ("eager", "napkin"))
    kept = inputs["attention_mask"].bool()
    torch.testing.assert_close(found[kept], wanted[kept], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", ["Llama", "Gemma2", "GptOss"])
def test_tokens(name, cache):
    model, inputs = made(name), prompt()
    words = {"max_new_tokens": 4, "do_sample": False, "cache_implementation": cache, "disable_compile": True}
    words |= {"return_dict_in_generate": True, "output_logits": True}
    wanted, found = (by(model, a, lambda: model.generate(**inputs, **words)) for a in ("eager", "napkin"))
    assert found.sequences.tolist() == wanted.sequences.tolist()
    torch.testing.assert_close(found.logits, wanted.logits, rtol=1e-4, atol=1e-4)


def test_the_prompt_in_pieces():
    # The queries of a later piece stand behind keys of earlier ones.
    model, tokens = made("Mistral"), prompt(padded=False)["input_ids"]
    whole = by(model, "napkin", lambda: model(tokens).logits)
    cache = transformers.DynamicCache(config=model.config)
    pieces = [model(piece, cache=cache, use_cache=True).logits for piece in tokens.split(4, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=1e-4, atol=1e-4)


def test_masks_of_ones_own():
    model, inputs = made("Llama"), prompt(padded=False)
    keep = torch.rand(BATCH, 1, LENGTH, LENGTH, generator=torch.Generator().manual_seed(3)).to(DEVICE) < 0.5
    keep |= torch.eye(LENGTH, dtype=torch.bool, device=DEVICE)
    added = torch.where(keep, 0.0, torch.finfo(torch.float32).min)
    wanted = by(model, "eager", lambda: model(inputs["input_ids"], attention_mask=added).logits)
    model.set_attn_implementation("napkin")
    for mask in (keep, added):
        torch.testing.assert_close(model(inputs["input_ids"], attention_mask=mask).logits, wanted, rtol=1e-4, atol=1e-4)


def test_packed_sequences():
    # Their mask is a function of positions, of which no rule is known: it comes as a tensor.
    model, tokens = made("Llama"), prompt(padded=False)["input_ids"][:1]
    words = {"position_ids": torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]], device=DEVICE), "use_cache": False}
    wanted, found = (by(model, a, lambda: model(tokens, **words).logits) for a in ("eager", "napkin"))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_bias_of_positions():
    model = made("T5", {"d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 4}, transformers.AutoModel)
    tokens = prompt()["input_ids"]
    call = lambda: model(input_ids=tokens, decoder_input_ids=tokens[:, :5]).last_hidden_state
    torch.testing.assert_close(by(model, "napkin", call), by(model, "eager", call), rtol=1e-4, atol=1e-4)


def test_a_combination_is_one_program():
    model, tokens = made("Llama"), prompt(padded=False)["input_ids"]
    counts = lambda: [
        len(napkin.transformers.programs()),
        sum(program.copies for program in napkin.transformers.programs()),
    ]
    by(model, "napkin", lambda: model(tokens))
    before = counts()
    model(tokens[:, :7])
    model(tokens[:1])
    other = made("Qwen3")
    by(other, "napkin", lambda: other(tokens))
    assert counts() == before


def test_gradients():
    model, inputs = made("Llama").requires_grad_(True), prompt()
    found = []
    for attention in ("sdpa", "napkin", "napkin_or_sdpa"):
        model.set_attn_implementation(attention)
        model.zero_grad()
        model(**inputs).logits.square().sum().backward()
        found.append(model.model.layers[0].self_attn.q_proj.weight.grad.clone())
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-3, atol=1e-4)
    with torch.no_grad():
        model.set_attn_implementation("sdpa")
        wanted = model(**inputs).logits
        model.set_attn_implementation("napkin_or_sdpa")
        kept = inputs["attention_mask"].bool()
        torch.testing.assert_close(model(**inputs).logits[kept], wanted[kept], rtol=1e-4, atol=1e-4)


def test_dropout_is_refused():
    model = made("Llama", {"attention_dropout": 0.1}).train()
    model.set_attn_implementation("napkin")
    with pytest.raises(NotImplementedError, match="no dropout"):
        model(**prompt())


def test_compiled():
    model, inputs = made("Llama"), prompt(padded=False)
    wanted = by(model, "napkin", lambda: model(**inputs, use_cache=False).logits)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(**inputs, use_cache=False).logits, wanted, rtol=1e-4, atol=1e-4)
