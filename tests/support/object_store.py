"""Owns an S3 server on this machine (moto), as tests of addresses need one."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

BUCKET = "bucket"


@contextmanager
def object_store() -> Iterator[Any]:
    """Yield a pyarrow file system of a server with an empty bucket, which the environment names to this process."""
    from moto.server import ThreadedMotoServer
    from penstock.storage.base import places
    from pyarrow import fs

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
    more = {"AWS_ALLOW_HTTP": "true", "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": url}
    try:
        with patch.dict("os.environ", keys | more):
            places._store.cache_clear()
            store = fs.S3FileSystem(endpoint_override=url, allow_bucket_creation=True)
            store.create_dir(BUCKET)
            yield store
    finally:
        places._store.cache_clear()
        server.stop()
