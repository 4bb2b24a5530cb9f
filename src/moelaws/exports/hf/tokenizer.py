"""The tokenizer of a corpus as files that transformers loads, with the end of a document.

The corpus' own tokenizer.json has no entry for the end of a document (``corpus.tokenizer``), but a
model must be able to write it, so it becomes a special token here. ``split_special_tokens`` makes
transformers read the characters of that token in a text as text, as training did.
"""

from typing import Any

TEXT = "<|endoftext|>"  # as GPT-2 calls it


def tokenizer(data: dict[str, Any], end_of_document: int) -> dict[str, Any]:
    """Returns ``data``, the tokenizer.json of the corpus, with an entry for the end of a document.

    A pretrained file may ask for truncation, padding, or tokens around each text. The corpus was
    prepared without these, so they are removed.
    """
    text = end_of_document_text(data)
    # Added tokens become entries of the model too. Otherwise the library numbers them by counting
    # the entries, which is wrong beside the new one and where a pretrained vocabulary has gaps.
    known = data.get("added_tokens", [])
    vocabulary = data["model"]["vocab"] | {token["content"]: token["id"] for token in known}
    added = {
        "id": end_of_document, "content": text, "single_word": False, "lstrip": False,
        "rstrip": False, "normalized": False, "special": True,
    }  # fmt: skip
    return {
        **data,
        "truncation": None,
        "padding": None,
        "post_processor": None,
        "added_tokens": [*known, added],
        "model": {**data["model"], "vocab": vocabulary | {text: end_of_document}},
    }


def end_of_document_text(data: dict[str, Any]) -> str:
    """Returns the text of the end of a document, which is no entry of the tokenizer ``data``."""
    entries = {added["content"] for added in data.get("added_tokens", [])}
    entries |= data["model"]["vocab"].keys()
    text = TEXT
    while text in entries:
        text = f"<|{text[2:-2]}_|>"
    return text


def tokenizer_config(data: dict[str, Any], context: int) -> dict[str, Any]:
    """Returns tokenizer_config.json for ``data``, the corpus' tokenizer.json."""
    text = end_of_document_text(data)
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": text,
        "eos_token": text,
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
    }
