"""Fine-tune a small transformer privately with LoRA: what is trained is small, and so is the noise that it takes.

    python examples/lora.py

A transformer learns on public sentences whether their words are friendlier than not. In the private sentences a third
of the words mean the opposite. Low-rank adapters (Hu et al. 2021, arXiv:2106.09685) beside its frozen layers learn that
under differential privacy, with batches in parts and gradients one layer at a time. It takes less than a minute on a
CPU.
"""

from __future__ import annotations

import math
import warnings

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset

from lessnoise import learn

WORDS, LENGTH = 40, 12


class Attention(nn.Module):
    """Each word looks at the words of its own sentence."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Sentences (records, words, width)."""
        query, key, value = (
            layer(x).unflatten(2, (self.heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        weights = (query @ key.transpose(2, 3) / math.sqrt(query.shape[3])).softmax(3)
        return self.out((weights @ value).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and two layers, each added to what comes in."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Sentences (records, words, width)."""
        x = x + self.attention(self.first(x))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Transformer(nn.Module):
    """Two classes of sentences."""

    def __init__(self, width: int = 32, heads: int = 4, blocks: int = 2) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(LENGTH, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.last = nn.Linear(width, 2)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Sentences (records, words) of word numbers."""
        places = self.places(torch.arange(LENGTH, device=words.device).expand_as(words))
        return self.last(self.blocks(self.words(words) + places).mean(1))


class LoRA(nn.Module):
    """A frozen layer and a correction of low rank, made of two layers that Opacus knows."""

    def __init__(self, frozen: nn.Linear, rank: int) -> None:
        super().__init__()
        self.frozen = frozen
        self.down = nn.Linear(frozen.in_features, rank, bias=False)
        self.up = nn.Linear(rank, frozen.out_features, bias=False)
        nn.init.zeros_(self.up.weight)  # at first nothing is corrected

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the frozen layer says, corrected."""
        return self.frozen(x) + self.up(self.down(x))


def add_lora(model: Transformer, rank: int) -> None:
    """Freeze all but the last layer, and put adapters beside the attention and the first layer of each block."""
    model.requires_grad_(False)
    for block in model.blocks:
        block.attention.query = LoRA(block.attention.query, rank)
        block.attention.value = LoRA(block.attention.value, rank)
        block.up = LoRA(block.up, rank)
    model.last.requires_grad_(True)


def sentences(count: int, *, private: bool, seed: int) -> TensorDataset:
    """Random words, and whether the friendly ones outweigh the others; privately, a third mean the opposite."""
    friendly = torch.linspace(-1.0, 1.0, WORDS)
    if private:
        friendly = torch.where(torch.arange(WORDS) % 3 == 0, -friendly, friendly)
    words = torch.randint(0, WORDS, (count, LENGTH), generator=torch.Generator().manual_seed(seed))
    return TensorDataset(words, (friendly[words].sum(1) > 0).long())


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    """The share of sentences that are classified right."""
    model.eval()
    with torch.no_grad():
        right = model(data.tensors[0]).argmax(1) == data.tensors[1]
    model.train()
    return float(right.float().mean())


def train_on_public(model: nn.Module, data: TensorDataset, epochs: int) -> None:
    """Without privacy, for the sentences are public."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        for words, labels in DataLoader(data, batch_size=128, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(words), labels).backward()
            optimizer.step()


def main(records: int = 6000, epochs: int = 8, public_epochs: int = 5, rank: int = 4, epsilon: float = 4.0) -> float:
    """Train, fine-tune, print what came of it; the accuracy at the end."""
    torch.manual_seed(0)
    warnings.filterwarnings("ignore", "Full backward hook")  # torch's, about layers whose input has no gradient
    model = Transformer()
    train_on_public(model, sentences(4000, private=False, seed=1), public_epochs)
    test = sentences(4000, private=True, seed=2)
    print(f"on public sentences {accuracy(model, sentences(4000, private=False, seed=3)):.1%}")
    print(f"on private ones, before fine-tuning {accuracy(model, test):.1%}")

    add_lora(model, rank)
    trained = [p for p in model.parameters() if p.requires_grad]
    print(f"{sum(p.numel() for p in trained):,} of {sum(p.numel() for p in model.parameters()):,} weights are trained")
    private = learn.make_private(
        model,
        torch.optim.Adam(trained, lr=1e-2),
        DataLoader(sentences(records, private=True, seed=4), batch_size=500),
        loss=F.cross_entropy,
        records=records,
        clip_norm=1.0,
        epsilon=epsilon,
        delta=1e-5,
        epochs=epochs,
        grad_sample_mode="ghost",
    )
    learn.fit(private, epochs=epochs, max_rows=250)
    found = accuracy(private.model, test)
    print(f"on private ones, after fine-tuning {found:.1%}")
    return found


if __name__ == "__main__":
    main()
