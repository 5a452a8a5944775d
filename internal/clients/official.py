"""The official Elasticsearch client: the current one, or with --client elasticsearch8 that of the major before it."""

import argparse
import os.path
import sys

_parser = argparse.ArgumentParser(add_help=False)
_parser.add_argument("--client", choices=["elasticsearch8"])
if folder := _parser.parse_known_args()[0].client:
    sys.path.insert(0, os.path.join(sys.prefix, folder))  # install.sh puts it there

import elasticsearch  # noqa: E402
from elasticsearch import dsl, helpers  # noqa: E402
