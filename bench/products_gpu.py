#!/usr/bin/env python3
"""Products that are no plain ones, beside what a user of torch would pick, in the same process: with padding, experts, pages, masks, narrow types, whole layers.

    python3 bench/products_gpu.py [--output bench/results/NAME.json] [--only NAME,...]

Each program is a text that no code knows, planned for the GPU at hand. Values are compared with torch's. Where torch has no kernel of the same types, as for
attention in e4m3, the peer computes in bf16 and the row says so."""
import gpu
import in_process
import torch

F = torch.nn.functional
BF16, E4M3 = torch.bfloat16, torch.float8_e4m3fn


def normal(*shape, dtype=BF16):
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)


def whole(high, *shape, dtype=torch.int32):
    return torch.randint(0, high, shape, device="cuda", dtype=dtype)


def convolution(images=32, side=56, channels=128):
    inside = " and ".join(f"{a} + {i} - 1 >= 0 and {a} + {i} - 1 < size({a})" for a, i in (("y", "i"), ("z", "j")))
    text = ("conv(X[n, y, z, c]: bf16, W[f, i, j, c]: bf16) -> O[n, y, z, f]: bf16\n"
            f"    O[n, y, z, f] = sum(i, j, c) where({inside}, X[n, y + i - 1, z + j - 1, c], 0) * W[f, i, j, c]\n")
    x, w = normal(images, side, side, channels), normal(channels, 3, 3, channels)
    sizes = {"n": images, "y": side, "z": side, "c": channels, "f": channels, "i": 3, "j": 3}
    at_torch = [t.permute(0, 3, 1, 2) for t in (x, w)]
    return text, sizes, [x, w], torch.empty_like(x), lambda: F.conv2d(*at_torch, padding=1).permute(0, 2, 3, 1)


def windows(images, side, channels, window=3, stride=1):
    text = ("conv(X[n, y, z, c]: bf16, W[f, i, j, c]: bf16) -> O[n, u, v, f]: bf16\n"
            f"    O[n, u, v, f] = sum(i, j, c) X[n, {stride} * u + i, {stride} * v + j, c] * W[f, i, j, c]\n")
    whole_side = stride * (side - 1) + window
    x, w = normal(images, whole_side, whole_side, channels), normal(channels, window, window, channels)
    sizes = {"n": images, "y": whole_side, "z": whole_side, "c": channels, "f": channels, "i": window, "j": window, "u": side, "v": side}
    at_torch = [t.permute(0, 3, 1, 2) for t in (x, w)]
    return text, sizes, [x, w], normal(images, side, side, channels), lambda: F.conv2d(*at_torch, stride=stride).permute(0, 2, 3, 1)


def experts(tokens=4096, width=2048, count=8):
    text = ("experts(X[t, c]: bf16, W[e, h, c]: bf16, of[t]: i32) -> Y[t, h]: bf16\n"
            "    Y[t, h] = sum(c) X[t, c] * W[of[t], h, c]\n")
    x, w, of = normal(tokens, width), normal(count, width, width), whole(count, tokens)
    # The peer's rows are sorted, and sorting is not counted.
    order = torch.argsort(of, stable=True)
    rows, ends = x[order].contiguous(), torch.cumsum(torch.bincount(of, minlength=count), 0).to(torch.int32)
    transposed = w.transpose(1, 2)

    def peer():
        return torch._grouped_mm(rows, transposed, offs=ends)

    back = torch.empty_like(order)
    back[order] = torch.arange(tokens, device="cuda")
    peer.in_order = lambda out: out[back]
    return text, {"t": tokens, "c": width, "h": width, "e": count}, [x, w, of], normal(tokens, width), peer


def paged(page, batch=64, heads=8, group=8, length=4096, width=128):
    text = (f"paged(Q[b, h, g, k]: bf16, K[p, s, h, k]: bf16, V[p, s, h, d]: bf16, table[b, n]: i32) -> O[b, h, g, d]: bf16\n"
            f"    S[b, h, g, x] = sum(k) Q[b, h, g, k] * K[table[b, x // {page}], x % {page}, h, k]\n"
            "    P[b, h, g, x] = softmax(x) S[b, h, g, x] * k^-0.5\n"
            f"    O[b, h, g, d] = sum(x) P[b, h, g, x] * V[table[b, x // {page}], x % {page}, h, d]\n")
    pages = batch * length // page
    q, k, v = normal(batch, heads, group, width), normal(pages, page, heads, width), normal(pages, page, heads, width)
    table = torch.randperm(pages, device="cuda").to(torch.int32).reshape(batch, -1)
    of = lambda t: t[table.long()].reshape(batch, length, heads, width).transpose(1, 2).contiguous()
    keys, values = of(k), of(v)  # the peer's lie side by side
    sizes = {"b": batch, "h": heads, "g": group, "k": width, "d": width, "p": pages, "s": page, "n": length // page, "x": length}
    return text, sizes, [q, k, v, table], torch.empty_like(q), lambda: F.scaled_dot_product_attention(q, keys, values)


def attention(dtype, is_causal, is_masked=False, heads=16, length=8192, width=128):
    name = "e4m3" if dtype == E4M3 else "bf16"
    score = "S[h, q, x] * k^-0.5"
    score = f"where({'M[q, x]' if is_masked else 'x <= q'}, {score}, -inf)" if is_causal or is_masked else score
    mask = ", M[q, x]: bool" if is_masked else ""
    text = (f"attention(Q[h, q, k]: {name}, K[h, x, k]: {name}, V[h, x, d]: {name}{mask}) -> O[h, q, d]: bf16\n"
            f"    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) {score}\n"
            "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n")
    q, k, v = (normal(heads, length, width, dtype=dtype) for _ in range(3))
    extra = [torch.rand(length, length, device="cuda") < 0.9] if is_masked else []
    wide = [t.to(BF16)[None] for t in (q, k, v)]
    peer = lambda: F.scaled_dot_product_attention(*wide, attn_mask=extra[0] if extra else None, is_causal=is_causal)[0]
    return text, {"h": heads, "q": length, "x": length, "k": width, "d": width}, [q, k, v, *extra], normal(heads, length, width), peer


def layer(tokens=4096, heads=32, width=128):
    text = ("layer(X[t, c]: bf16, G[c]: bf16, A[h, k, c]: bf16, B[h, k, c]: bf16, C[h, k, c]: bf16, D[o, h, k]: bf16) -> Y[t, o]: bf16\n"
            "    N[t, c]: bf16 = rmsnorm(c)(X[t, c], G[c])\n    Q[h, t, k]: bf16 = sum(c) N[t, c] * A[h, k, c]\n"
            "    K[h, s, k]: bf16 = sum(c) N[s, c] * B[h, k, c]\n    V[h, s, k]: bf16 = sum(c) N[s, c] * C[h, k, c]\n"
            "    S[h, t, s] = sum(k) Q[h, t, k] * K[h, s, k]\n    P[h, t, s] = softmax(s) where(s <= t, S[h, t, s] * k^-0.5, -inf)\n"
            "    O[h, t, k]: bf16 = sum(s) P[h, t, s] * V[h, s, k]\n    Y[t, o] = sum(h, k) O[h, t, k] * D[o, h, k]\n")
    c = heads * width
    x, g = normal(tokens, c), normal(c)
    a, b, w = (normal(heads, width, c) / c ** 0.5 for _ in range(3))
    d = normal(c, heads, width) / c ** 0.5

    def peer(x, g, a, b, w, d):
        n = F.rms_norm(x, (c,), g, 1e-6)
        q, k, v = ((n @ m.reshape(c, c).T).reshape(tokens, heads, width).transpose(0, 1)[None] for m in (a, b, w))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)[0].transpose(0, 1).reshape(tokens, c) @ d.reshape(c, c).T

    compiled = torch.compile(peer)
    sizes = {"t": tokens, "s": tokens, "c": c, "o": c, "h": heads, "k": width}
    return text, sizes, [x, g, a, b, w, d], torch.empty_like(x), lambda: compiled(x, g, a, b, w, d)


def weights(rows, width=8192):
    text = ("f(X[m, k]: bf16, W[n, k]: i8, S[n]: bf16) -> Y[m, n]: bf16\n    Y[m, n] = sum(k) X[m, k] * f32(W[n, k]) * S[n]\n")
    x, w, s = normal(rows, width), torch.randint(-127, 128, (width, width), device="cuda", dtype=torch.int8), normal(width)
    wide = w.to(BF16)  # the peer's weights have 16 bits
    return text, {"m": rows, "k": width, "n": width}, [x, w, s], normal(rows, width), lambda: (x @ wide.T) * s


def cache(page=0, batch=64, heads=8, group=8, length=4096, width=128):
    """Queries in bf16 beside keys and values in e4m3, whose peer has them in bf16."""
    of = f"[table[b, x // {page}], x % {page}, h, " if page else "[b, x, h, "
    text = (f"cache(Q[b, h, g, k]: bf16, K[{'p, s' if page else 'b, x'}, h, k]: e4m3, V[{'p, s' if page else 'b, x'}, h, d]: e4m3, "
            f"u[h], v[h]{', table[b, n]: i32' if page else ''}) -> O[b, h, g, d]: bf16\n"
            f"    S[b, h, g, x] = (sum(k) Q[b, h, g, k] * K{of}k]) * u[h]\n    P[b, h, g, x] = softmax(x) S[b, h, g, x] * k^-0.5\n"
            f"    O[b, h, g, d] = (sum(x) P[b, h, g, x] * V{of}d]) * v[h]\n")
    rows = (batch * length // page, page) if page else (batch, length)
    q, k, v = normal(batch, heads, group, width), normal(*rows, heads, width, dtype=E4M3), normal(*rows, heads, width, dtype=E4M3)
    ones = [torch.ones(heads, device="cuda") for _ in range(2)]
    table = [torch.randperm(rows[0], device="cuda").to(torch.int32).reshape(batch, -1)] if page else []
    wide = lambda t: (t[table[0].long()] if page else t).to(BF16).reshape(batch, length, heads, width).transpose(1, 2).contiguous()
    keys, values = wide(k), wide(v)
    sizes = {"b": batch, "h": heads, "g": group, "k": width, "d": width, "x": length}
    if page:
        sizes |= {"p": rows[0], "s": page, "n": length // page}
    return text, sizes, [q, k, v, *ones, *table], torch.empty_like(q), lambda: F.scaled_dot_product_attention(q, keys, values)


def weights_of_4_bits(rows, width=8192, block=128):
    """Two in a byte, with a scale for each 128 of them."""
    text = (f"f(X[m, k]: bf16, W[n, j]: u8, S[n, g]: bf16) -> Y[m, n]: bf16\n"
            f"    Y[m, n] = sum(k) X[m, k] * (f32((W[n, k // 2] // where(k % 2 == 0, 1, 16)) % 16 - 8) * S[n, k // {block}])\n")
    x, w, s = normal(rows, width), whole(256, width, width // 2, dtype=torch.uint8), normal(width, width // block)
    halves = torch.stack([w % 16, w // 16], dim=-1).reshape(width, width).to(torch.float32) - 8
    wide = (halves * s.float().repeat_interleave(block, dim=1)).to(BF16)
    sizes = {"m": rows, "k": width, "n": width, "j": width // 2, "g": width // block}
    return text, sizes, [x, w, s], normal(rows, width), lambda: x @ wide.T


def weights_of_e4m3(rows, width=8192):
    text = "f(X[m, k]: bf16, W[n, k]: e4m3, S[n]) -> Y[m, n]: bf16\n    Y[m, n] = (sum(k) X[m, k] * W[n, k]) * S[n]\n"
    x, w, s = normal(rows, width), normal(width, width, dtype=E4M3), normal(width, dtype=torch.float32)
    wide = w.to(BF16)
    return text, {"m": rows, "k": width, "n": width}, [x, w, s], normal(rows, width), lambda: (x @ wide.T) * s


def integers(rows=4096):
    text = "f(X[m, k]: i8, W[n, k]: i8, S[n]) -> Y[m, n]: bf16\n    Y[m, n] = (sum(k) X[m, k] * W[n, k]) * S[n]\n"
    x, w = (torch.randint(-128, 128, (rows, rows), device="cuda", dtype=torch.int8) for _ in range(2))
    s = torch.rand(rows, device="cuda")
    return text, {"m": rows, "k": rows, "n": rows}, [x, w, s], normal(rows, rows), lambda: torch._int_mm(x, w.T) * s


def top_experts(tokens=4096, width=2048, count=8, chosen=2):
    text = ("experts(X[t, c]: bf16, W[e, h, c]: bf16, of[t, j]: i32, G[t, j]: bf16) -> Y[t, h]: bf16\n"
            "    Y[t, h] = sum(j, c) G[t, j] * X[t, c] * W[of[t, j], h, c]\n")
    x, w, of, g = normal(tokens, width), normal(count, width, width), whole(count, tokens, chosen), normal(tokens, chosen)
    order = torch.argsort(of.flatten(), stable=True)
    rows, ends = order // chosen, torch.cumsum(torch.bincount(of.flatten(), minlength=count), 0).to(torch.int32)
    gates = g.flatten()[order, None]
    transposed = w.transpose(1, 2)

    def peer():  # its order is known beforehand
        products = torch._grouped_mm(x[rows], transposed, offs=ends) * gates
        return torch.zeros(tokens, width, device="cuda", dtype=BF16).index_add_(0, rows, products)

    sizes = {"t": tokens, "c": width, "h": width, "e": count, "j": chosen}
    return text, sizes, [x, w, of, g], normal(tokens, width), peer


def embedding_gradient(words=50000, tokens=8192, width=1024):
    text = "f(dY[n, d]: bf16, I[n]: i32) -> dT[v, d]: f32\n    dT[v, d] = sum(n) where(I[n] == v, dY[n, d], 0)\n"
    y, i = normal(tokens, width), whole(words, tokens)
    peer = lambda: torch.zeros(words, width, device="cuda").index_add_(0, i, y.float())
    return text, {"n": tokens, "d": width, "v": words}, [y, i], normal(words, width, dtype=torch.float32), peer


def bilinear(rows=1024, width=256):
    text = "f(X[b, i]: bf16, W[o, i, j]: bf16, Z[b, j]: bf16) -> Y[b, o]: bf16\n    Y[b, o] = sum(i, j) X[b, i] * W[o, i, j] * Z[b, j]\n"
    x, w, z = normal(rows, width), normal(width, width, width), normal(rows, width)
    flat = w.reshape(width * width, width)
    peer = torch.compile(lambda x, z, flat: ((z @ flat.T).reshape(rows, width, width) * x[:, None]).sum(-1))
    return text, {"b": rows, "i": width, "j": width, "o": width}, [x, w, z], normal(rows, width), lambda: peer(x, z, flat)


def first_convolution(images=32, side=112, channels=64):
    text = ("conv(X[n, y, z, c]: bf16, W[f, i, j, c]: bf16) -> O[n, u, v, f]: bf16\n"
            "    O[n, u, v, f] = sum(i, j, c) X[n, 2 * u + i, 2 * v + j, c] * W[f, i, j, c]\n")
    whole_side = 2 * side + 6
    x, w = normal(images, whole_side, whole_side, 3), normal(channels, 7, 7, 3)
    sizes = {"n": images, "y": whole_side, "z": whole_side, "c": 3, "f": channels, "i": 7, "j": 7, "u": side, "v": side}
    at_torch = [t.permute(0, 3, 1, 2) for t in (x, w)]
    return (text, sizes, [x, w], normal(images, side, side, channels),
            lambda: F.conv2d(*at_torch, stride=2)[:, :, :side, :side].permute(0, 2, 3, 1))


def transposed_convolution(window=2, padding=0, images=32, side=28, channels=128, out_channels=64):
    """With a stride of 2."""
    places = [f"({a} - {i} + {padding})" if padding else f"({a} - {i})" for a, i in (("u", "i"), ("v", "j"))]
    conditions = [f"{place} % 2 == 0" for place in places]
    if window > 2:  # other taps lie inside of the array
        conditions += [f"{place} >= 0 and {place} // 2 < size({a})" for place, a in zip(places, "yz")]
    text = ("conv(X[n, y, z, c]: bf16, W[f, i, j, c]: bf16) -> O[n, u, v, f]: bf16\n"
            f"    O[n, u, v, f] = sum(i, j, c) where({' and '.join(conditions)}, X[n, {places[0]} // 2, {places[1]} // 2, c] * W[f, i, j, c], 0)\n")
    x, w = normal(images, side, side, channels), normal(out_channels, window, window, channels)
    wide = 2 * (side - 1) + window - 2 * padding
    sizes = {"n": images, "y": side, "z": side, "c": channels, "f": out_channels, "i": window, "j": window, "u": wide, "v": wide}
    at_torch = x.permute(0, 3, 1, 2), w.permute(3, 0, 1, 2).contiguous(memory_format=torch.channels_last)
    return (text, sizes, [x, w], normal(images, wide, wide, out_channels),
            lambda: F.conv_transpose2d(*at_torch, stride=2, padding=padding).permute(0, 2, 3, 1))


def depthwise_convolution(images=32, side=56, channels=128, window=3):
    text = ("f(X[n, y, z, c]: bf16, W[i, j, c]: bf16) -> O[n, u, v, c]: bf16\n"
            "    O[n, u, v, c] = sum(i, j) X[n, u + i, v + j, c] * W[i, j, c]\n")
    whole_side = side + window - 1
    x, w = normal(images, whole_side, whole_side, channels), normal(window, window, channels)
    sizes = {"n": images, "y": whole_side, "z": whole_side, "c": channels, "i": window, "j": window, "u": side, "v": side}
    at_torch = x.permute(0, 3, 1, 2), w.permute(2, 0, 1).unsqueeze(1).contiguous(memory_format=torch.channels_last)
    return text, sizes, [x, w], normal(images, side, side, channels), lambda: F.conv2d(*at_torch, groups=channels).permute(0, 2, 3, 1)


def normalisation(groups=0, images=32, side=56, channels=128):
    """Over images, rows and columns, as batch norm does, or over rows, columns and the channels of a group."""
    channel = "g, c" if groups else "c"
    reduced, kept = ("y, z, c", "n, g") if groups else ("n, y, z", "c")
    count = " * ".join(f"size({a})" for a in reduced.split(", "))
    value = f"X[n, y, z, {channel}]"
    text = (f"f({value}: bf16, A[{channel}], B[{channel}]) -> O[n, y, z, {channel}]: bf16\n"
            f"    M[{kept}] = (sum({reduced}) {value}) / ({count})\n    V[{kept}] = (sum({reduced}) ({value} - M[{kept}])^2) / ({count})\n"
            f"    O[n, y, z, {channel}] = ({value} - M[{kept}]) * rsqrt(V[{kept}] + 1e-5) * A[{channel}] + B[{channel}]\n")
    shape = (groups, channels // groups) if groups else (channels,)
    x, a, b = normal(images, side, side, *shape), normal(*shape, dtype=torch.float32), normal(*shape, dtype=torch.float32)
    at_torch = x.reshape(images, side, side, channels).permute(0, 3, 1, 2)
    narrow = [t.to(BF16).flatten() for t in (a, b)]
    peer = (lambda: F.group_norm(at_torch, groups, *narrow)) if groups else (lambda: F.batch_norm(at_torch, None, None, a, b, True))
    sizes = {"n": images, "y": side, "z": side, **({"g": groups} if groups else {}), "c": shape[-1]}
    return text, sizes, [x, a, b], torch.empty_like(x), lambda: peer().permute(0, 2, 3, 1).reshape(x.shape)


def product(m, n, k):
    text = "f(A[m, k]: bf16, B[k, n]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[k, n]\n"
    a, b = normal(m, k), normal(k, n)
    return text, {"m": m, "n": n, "k": k}, [a, b], normal(m, n), lambda: a @ b


PROGRAMS = {
    "convolution with padding": (convolution, "torch's conv2d, channels last"),
    "convolution 3×3, 56×56×128": (lambda: windows(32, 56, 128), "torch's conv2d, channels last"),
    "convolution 3×3, 28×28×256": (lambda: windows(32, 28, 256), "torch's conv2d, channels last"),
    "convolution 3×3, stride 2": (lambda: windows(32, 28, 256, stride=2), "torch's conv2d, channels last"),
    "convolution 1×1, stride 2": (lambda: windows(32, 28, 512, window=1, stride=2), "torch's conv2d, channels last"),
    "experts": (experts, "torch._grouped_mm of sorted rows"),
    "pages of 16": (lambda: paged(16), "torch's attention, without pages"),
    "pages of 64": (lambda: paged(64), "torch's attention, without pages"),
    "pages of 256": (lambda: paged(256), "torch's attention, without pages"),
    "attention e4m3": (lambda: attention(E4M3, False), "torch's attention in bf16"),
    "attention e4m3 causal": (lambda: attention(E4M3, True), "torch's attention in bf16"),
    "attention with a mask": (lambda: attention(BF16, False, True), "torch's attention"),
    "attention layer": (layer, "torch.compile"),
    "weights of 8 bits, 16 rows": (lambda: weights(16), "torch's product in bf16"),
    "weights of 8 bits, 512 rows": (lambda: weights(512), "torch's product in bf16"),
    "weights of e4m3, 16 rows": (lambda: weights_of_e4m3(16), "torch's product in bf16"),
    "weights of e4m3, 512 rows": (lambda: weights_of_e4m3(512), "torch's product in bf16"),
    "weights of 4 bits, 1 row": (lambda: weights_of_4_bits(1), "torch's product in bf16"),
    "weights of 4 bits, 16 rows": (lambda: weights_of_4_bits(16), "torch's product in bf16"),
    "weights of 4 bits, 512 rows": (lambda: weights_of_4_bits(512), "torch's product in bf16"),
    "product of 8-bit integers": (integers, "torch._int_mm and a product by scales"),
    "experts, two a token": (top_experts, "torch._grouped_mm of rows in a known order, and index_add_"),
    "gradient of an embedding": (embedding_gradient, "torch's index_add_"),
    "bilinear": (bilinear, "torch.compile of a product and a sum"),
    "convolution 7×7 of 3 channels": (first_convolution, "torch's conv2d, channels last"),
    "transposed convolution": (transposed_convolution, "torch's conv_transpose2d, channels last"),
    "transposed convolution 4×4": (lambda: transposed_convolution(4, 1), "torch's conv_transpose2d, channels last"),
    "depthwise convolution": (depthwise_convolution, "torch's conv2d, channels last"),
    "batch norm": (normalisation, "torch's batch_norm, channels last"),
    "group norm": (lambda: normalisation(32), "torch's group_norm, channels last"),
    "product 3000×5000×7000": (lambda: product(3000, 5000, 7000), "torch's product"),
    "product 4096×4096×64": (lambda: product(4096, 4096, 64), "torch's product"),
    "product of one row": (lambda: product(1, 8192, 8192), "torch's product"),
    "cache of e4m3": (cache, "torch's attention in bf16"),
    "cache of e4m3, pages of 64": (lambda: cache(64), "torch's attention in bf16, without pages"),
}


def measured_program(napkin, name, text, sizes, inputs, out, peer, peer_is, seconds):
    """One program beside its peer: times, and how far their values are apart. Says so on a line."""
    kernel = napkin.kernel(text, sizes).compile()
    ours = lambda: kernel(*inputs, out)
    ours()
    wanted = peer()
    wanted = peer.in_order(wanted) if hasattr(peer, "in_order") else wanted
    torch.cuda.synchronize()
    apart = ((out.float() - wanted.float()).abs().max() / wanted.float().abs().max()).item()
    row = {"program": name, "sizes": sizes, "peer": peer_is, "predicted_seconds": kernel.predicted_seconds,
           "seconds": gpu.seconds_of(ours, seconds), "peer_seconds": gpu.seconds_of(peer, seconds), "largest_difference": apart}
    kernel.free()
    print("{program:36} {0:9.1f} µs, predicted {1:9.1f}  peer {2:9.1f} ({peer})  {3:.3f} ×  apart {largest_difference:.4f}".format(
        *(row[key] * 1e6 for key in ("seconds", "predicted_seconds", "peer_seconds")), row["peer_seconds"] / row["seconds"], **row), flush=True)
    return row


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--only", default="", help="names of programs, or parts of them, separated by commas")
    options = parser.parse_args()
    napkin = in_process.Napkin()
    torch.manual_seed(1)
    found = []
    for name, (make, peer_is) in gpu.each_selected(PROGRAMS, options.only):
        try:
            found.append(measured_program(napkin, name, *make(), peer_is, options.seconds))
        except Exception as error:  # one program that fails must not hide the others
            print(name, "failed:", str(error)[:600], flush=True)
    gpu.write(options, "napkin.products/1", torch.cuda.get_device_name(0), programs=found)


if __name__ == "__main__":
    main()
