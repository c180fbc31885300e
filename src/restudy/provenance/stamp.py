"""The facts that determine an output, embedded in the output itself, with a sum over its content.

Parquet keeps them in the schema metadata, safetensors in the header, PNG in a text chunk, SVG and HTML in a comment,
PDF in a trailing comment, JSON under a key. Only deterministic facts are embedded: the same run gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from restudy.errors import ResultError

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_KEY = b"restudy\x00"
_COMMENT = re.compile(rb"<!--restudy (.*?)-->\n", re.DOTALL)
_PDF = re.compile(rb"%restudy (.*)\n\Z")


@dataclass(frozen=True)
class Facts:
    """What determines an output. `content` is filled in when it is written.

    `kernels` names the kernel sets that had a hand in it, sorted: one kind of machine gives the same bytes, two give
    different numbers under one fingerprint. It is no part of the fingerprint or of the content sum.
    """

    study: str
    preset: str
    kind: str
    name: str
    shard: str
    fingerprint: str
    ingredients: dict[str, Any] = field(default_factory=dict)
    content: str = ""
    kernels: list[str] = field(default_factory=list)

    def encode(self, content: str) -> bytes:
        """ASCII JSON with the content sum; double hyphens are escaped, so that no value can end a comment."""
        text = json.dumps(asdict(self) | {"content": content}, sort_keys=True, separators=(",", ":"), default=str)
        return text.replace("--", "-\\u002d").encode("ascii")


def stamp_bytes(payload: bytes, suffix: str, facts: Facts) -> bytes:
    """A figure or page (`.svg`, `.png`, `.pdf`, `.html`) with facts embedded.

    Raises:
        ValueError: another suffix.
    """
    encoded = facts.encode(hashlib.sha256(payload).hexdigest())
    if suffix == ".png":
        body = _PNG_KEY + encoded
        chunk = struct.pack(">I", len(body)) + b"tEXt" + body + struct.pack(">I", zlib.crc32(b"tEXt" + body))
        end = payload.rindex(b"IEND") - 4
        return payload[:end] + chunk + payload[end:]
    if suffix in (".svg", ".html"):
        end = payload.rindex(b"</")
        return payload[:end] + b"<!--restudy " + encoded + b"-->\n" + payload[end:]
    if suffix == ".pdf":
        return payload + b"%restudy " + encoded + b"\n"
    raise ValueError(f"no place for facts in a {suffix} file")


def stamp_parquet(table: Any, facts: Facts) -> bytes:
    """A table as Parquet bytes with facts embedded.

    The sum is taken over the table as it is read back, so that encodings of equal content do not matter.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from restudy.results.tables import table_bytes

    back = pq.read_table(pa.BufferReader(table_bytes(table)))
    return table_bytes(table, facts.encode(_table_sum(back)))


def stamp_tensors(tensors: dict[str, Any], facts: Facts) -> bytes:
    """Named torch tensors as safetensors bytes with facts embedded (dtypes and shapes are kept)."""
    from safetensors.torch import save

    plain = {name: tensors[name].detach().contiguous().cpu() for name in sorted(tensors)}
    encoded = facts.encode(_tensor_sum(save(plain)))
    return bytes(save(plain, metadata={"restudy": encoded.decode("ascii")}))


def stamp_json(content: dict[str, Any], facts: Facts) -> bytes:
    """A JSON object with facts embedded under the key `restudy`."""
    encoded = json.loads(facts.encode(_json_sum(content)))
    return (json.dumps(content | {"restudy": encoded}, indent=1, sort_keys=True) + "\n").encode()


def read_stamp(path: Path) -> tuple[Facts, str]:
    """The facts embedded in a file, and the sum of the content that is really there.

    Raises:
        ResultError: missing, unreadable, or without facts.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ResultError("missing", where=str(path), remedy="run `make reproduce`") from None
    try:
        encoded, content = _READERS[path.suffix](raw)
        return Facts(**json.loads(encoded)), content
    except (KeyError, ValueError, TypeError, AttributeError, struct.error, OSError) as error:
        reason = str(error).splitlines()[0][:80] if str(error) else type(error).__name__
        raise ResultError(
            f"cut short or without its facts ({reason})", where=str(path), remedy="run `make reproduce`"
        ) from None


def kernels_in(path: Path) -> list[str]:
    """The kernel sets named in a table's or a tensor file's header; the content is not looked at.

    Empty where the file is missing, unreadable, of another kind or older than this record.
    """
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            encoded = pq.read_schema(path).metadata[b"restudy"]
        elif path.suffix == ".safetensors":
            with path.open("rb") as file:
                (size,) = struct.unpack("<Q", file.read(8))
                encoded = json.loads(file.read(min(size, 1 << 24)))["__metadata__"]["restudy"]
        else:
            return []
        return [str(name) for name in json.loads(encoded).get("kernels", [])]
    except (KeyError, ValueError, TypeError, AttributeError, struct.error, OSError):
        return []


def verify(path: Path, fingerprint: str) -> str | None:
    """None when a file is what the current source, parameters and data would give; else the reason, in words."""
    try:
        facts, content = read_stamp(path)
    except ResultError as error:
        return error.what
    if facts.content != content:
        return "content does not match its own sum (tampered with)"
    if facts.fingerprint != fingerprint:
        return f"stale: fingerprint {facts.fingerprint[:12]} -> {fingerprint[:12]}"
    return None


def _read_parquet(raw: bytes) -> tuple[bytes, str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(raw))
    return table.schema.metadata[b"restudy"], _table_sum(table)


def _table_sum(table: Any) -> str:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    plain = table.replace_schema_metadata(None).combine_chunks()
    with pa.ipc.new_stream(sink, plain.schema) as writer:
        writer.write_table(plain)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def _read_tensors(raw: bytes) -> tuple[bytes, str]:
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    return header["__metadata__"]["restudy"].encode("ascii"), _tensor_sum(raw)


def _tensor_sum(raw: bytes) -> str:
    (size,) = struct.unpack("<Q", raw[:8])
    header = {k: v for k, v in json.loads(raw[8 : 8 + size]).items() if k != "__metadata__"}
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    digest.update(raw[8 + size :])
    return digest.hexdigest()


def _read_png(raw: bytes) -> tuple[bytes, str]:
    at, end = len(_PNG_SIGNATURE), raw.rindex(b"IEND")
    while at < end:
        (length,) = struct.unpack(">I", raw[at : at + 4])
        body = raw[at + 8 : at + 8 + length]
        if raw[at + 4 : at + 8] == b"tEXt" and body.startswith(_PNG_KEY):
            return body[len(_PNG_KEY) :], hashlib.sha256(raw[:at] + raw[at + 12 + length :]).hexdigest()
        at += 12 + length
    raise ValueError("no text chunk")


def _read_comment(raw: bytes) -> tuple[bytes, str]:
    match = _COMMENT.search(raw)
    if match is None:
        raise ValueError("no comment")
    return match.group(1), hashlib.sha256(raw[: match.start()] + raw[match.end() :]).hexdigest()


def _read_json(raw: bytes) -> tuple[bytes, str]:
    content = json.loads(raw)
    return json.dumps(content.pop("restudy")).encode(), _json_sum(content)


def _json_sum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_pdf(raw: bytes) -> tuple[bytes, str]:
    match = _PDF.search(raw)
    if match is None:
        raise ValueError("no trailing comment")
    return match.group(1), hashlib.sha256(raw[: match.start()]).hexdigest()


_READERS = {
    ".parquet": _read_parquet,
    ".safetensors": _read_tensors,
    ".png": _read_png,
    ".svg": _read_comment,
    ".html": _read_comment,
    ".pdf": _read_pdf,
    ".json": _read_json,
}
