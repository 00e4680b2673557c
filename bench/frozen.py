"""Time and memory of a training step when parts of a model are frozen, against PyTorch with requires_grad = False.

    python bench/frozen.py build/attend FOLDER_OF_MINILM [STEPS]

Two models, each with all weights, and with the part that learns alone: all-MiniLM-L6-v2 (its last two layers), batches of
16 pairs of 24 words; a ViT of 12 layers of 192 features on images of 64 x 64 pixels in patches of 8 (its head), batches of
32. Both programs have 2 threads. A step's time is the difference of runs of STEPS and 2 steps by the tool, and the median
of the steps of PyTorch; memory is the most that the process had (ru_maxrss)."""
import json, os, random, statistics, struct, subprocess, sys, tempfile, time

THREADS, WORDS, PAIRS, CLASSES, SIDE = 2, 24, 16, 10, 64
FREEZE = {"embed": "embeddings,layer.0,layer.1,layer.2,layer.3", "classify": "patches,embeddings,layer,norm"}


def run(command):
    begin = time.monotonic()
    pid = os.posix_spawn(command[0], command, os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, "out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                                       (os.POSIX_SPAWN_OPEN, 2, "err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)])
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(" ".join(command) + "\n" + open("err").read())
    return time.monotonic() - begin, usage.ru_maxrss / 1024


def attend(tool, kind, arguments, frozen, steps):
    seconds = {}
    for n in (2, steps):
        command = [tool, "train", kind, *arguments, "--steps", str(n), "--threads", str(THREADS), "--schedule", "constant",
                   "--warmup", "1", "--save-every", "100000", "--validate-every", "100000", "-o", f"{kind}-{frozen}-{n}"]
        if frozen:
            command += ["--freeze", FREEZE[kind]]
        seconds[n], memory = run(command)
    return (seconds[steps] - seconds[2]) / (steps - 2), memory


def peer(kind, model, frozen, steps):
    run([sys.executable, os.path.abspath(__file__), "torch", kind, model, str(int(frozen)), str(steps)])
    with open("out") as f:
        return json.load(f)


def torch_steps(kind, model, frozen, steps):
    import resource
    import torch
    import transformers
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    if kind == "embed":
        m = transformers.BertModel.from_pretrained(model, add_pooling_layer=False)
        learns = lambda name: not frozen or "layer.4." in name or "layer.5." in name
        ids = torch.randint(1000, 30000, (2 * PAIRS, WORDS + 2))
        def loss():
            x = torch.nn.functional.normalize(m(ids).last_hidden_state.mean(1), dim=1)
            return (((x[:PAIRS] * x[PAIRS:]).sum(1) - 0.5) ** 2).mean()
    else:
        m = transformers.ViTForImageClassification.from_pretrained(model)
        learns = lambda name: not frozen or name.startswith("classifier")
        images, labels = torch.rand(32, 3, SIDE, SIDE), torch.randint(0, CLASSES, (32,))
        def loss():
            return torch.nn.functional.cross_entropy(m(images).logits, labels)
    m.train()
    for name, p in m.named_parameters():
        p.requires_grad = learns(name)
    optimizer = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], lr=1e-5)
    seconds = []
    for _ in range(steps):
        begin = time.monotonic()
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        seconds.append(time.monotonic() - begin)
    print(json.dumps([statistics.median(seconds[2:]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def write_data():
    random.seed(1)
    words = "time year people day man thing woman life child world school state family student group country".split()
    with open("pairs.tsv", "w") as f:
        for _ in range(400):
            a, b = (" ".join(random.choices(words, k=WORDS)) for _ in range(2))
            f.write(f"{a}\t{b}\t{random.randint(0, 5)}\n")
    import torch, transformers
    torch.manual_seed(1)
    config = transformers.ViTConfig(hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=768,
                                    image_size=SIDE, patch_size=8, num_labels=CLASSES,
                                    id2label={c: str(c) for c in range(CLASSES)})
    transformers.ViTForImageClassification(config).save_pretrained("vit")
    transformers.ViTImageProcessor(size={"height": SIDE, "width": SIDE}).save_pretrained("vit")
    from PIL import Image
    for c in range(CLASSES):
        os.makedirs(f"images/{c}")
        for i in range(40):
            Image.frombytes("RGB", (SIDE, SIDE), random.randbytes(3 * SIDE * SIDE)).save(f"images/{c}/{i}.png")


def main():
    tool, minilm, steps = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int((sys.argv + ["12"])[3])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run([sys.executable, os.path.abspath(__file__), "data"])  # a process without torch: children begin with its memory
        cases = {"embed": (minilm, ["-m", minilm, "--pairs", "pairs.tsv", "--batch", str(PAIRS), "--rate", "1e-5"]),
                 "classify": ("vit", ["-m", "vit", "--data", "images", "--batch", "32", "--rate", "1e-5"])}
        print("| | attend ms | MB | PyTorch ms | MB |\n|-|-|-|-|-|")
        for kind, (model, arguments) in cases.items():
            for frozen in (False, True):
                ours, theirs = attend(tool, kind, arguments, frozen, steps), peer(kind, model, frozen, steps)
                what = "all weights" if not frozen else "last two layers" if kind == "embed" else "head"
                print(f"| {kind}, {what} | {1000 * ours[0]:.0f} | {ours[1]:.0f} | {1000 * theirs[0]:.0f} | {theirs[1]:.0f} |",
                      flush=True)


if sys.argv[1] == "torch":
    torch_steps(sys.argv[2], sys.argv[3], sys.argv[4] == "1", int(sys.argv[5]))
elif sys.argv[1] == "data":
    write_data()
else:
    main()
