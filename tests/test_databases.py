import pytest

from databases import postgres


def test_without_postgresql_one_sentence_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("VSEG_PG_BIN", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"apt install postgresql.*VSEG_PG_BIN"), postgres():
        pass
