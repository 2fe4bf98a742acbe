"""What tests of the writer share.

`storage`  a storage in a new folder
"""

from __future__ import annotations

from pathlib import Path

import pytest

from forklake.data.storage.storage import Storage, open_storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))
