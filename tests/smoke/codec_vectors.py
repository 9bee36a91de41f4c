"""The committed codec vectors as tensors (encoding: numerics vectors INDEX)."""

import json
import struct
from pathlib import Path

import torch

FOLDER = Path(__file__).parent / "vectors"


def cases(file: str, folder: Path = FOLDER) -> list[dict]:
    return json.loads((folder / file).read_text())["cases"]


def single(bits: str) -> float:
    return struct.unpack(">f", bytes.fromhex(bits))[0]


def bf16(text: str, *shape: int) -> torch.Tensor:
    """Concatenated big-endian 4-hex-digit BF16 patterns."""
    patterns = [int.from_bytes(bytes.fromhex(text[i : i + 4]), "big", signed=True) for i in range(0, len(text), 4)]
    return torch.tensor(patterns, dtype=torch.int16).view(torch.bfloat16).reshape(shape or (-1,))


def octets(text: str, rows: int = 1) -> torch.Tensor:
    return torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8).reshape(rows, -1)


def comparable(packed: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Codes with the undefined signs removed: of zeros, and where the input is NaN."""
    codes = torch.stack((packed & 15, packed >> 4), dim=-1).reshape(values.shape)
    return torch.where((codes == 8) | torch.isnan(values.float()), codes & 7, codes)
