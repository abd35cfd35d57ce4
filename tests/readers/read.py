"""Reads exports with other people's programs and prints what they found as JSON.

read.py table FILE        types and counts by pyarrow and DuckDB (Parquet), csv and DuckDB (CSV)
read.py har FILE SCHEMA   what breaks the schema, and what an archive library makes of the file
read.py query DIRECTORY   runs each SQL text of a JSON list on stdin, in that directory
"""

import csv
import json
import os
import sys
from collections import Counter

import duckdb


def counts(path):
    """Rows by kind, and the sum of their numbers, as DuckDB reads the file."""
    rows = duckdb.sql(f"SELECT kind, count(*), sum(seq) FROM '{path}' GROUP BY kind").fetchall()
    return {kind: [number, int(total)] for kind, number, total in rows}


def types(path):
    return {row[0]: row[1] for row in duckdb.sql(f"DESCRIBE SELECT * FROM '{path}'").fetchall()}


def table(path):
    found = {"duckdb": {"kinds": counts(path), "types": types(path)}}
    if path.endswith(".csv"):
        csv.field_size_limit(1 << 30)
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, strict=True))
        kinds, sums = Counter(row["kind"] for row in rows), Counter()
        for row in rows:
            sums[row["kind"]] += int(row["seq"])
            json.loads(row["payload"])
        found["csv"] = {"kinds": {kind: [number, sums[kind]] for kind, number in kinds.items()}}
    if path.endswith(".parquet"):
        import pyarrow.parquet

        read = pyarrow.parquet.read_table(path)
        grouped = read.group_by("kind").aggregate([("seq", "count"), ("seq", "sum")]).to_pylist()
        found["pyarrow"] = {
            "kinds": {row["kind"]: [row["seq_count"], row["seq_sum"]] for row in grouped},
            "types": {field.name: str(field.type) for field in read.schema},
            "never_null": [field.name for field in read.schema if not field.nullable],
        }
    return found


def har(path, schema_path):
    import jsonschema
    from haralyzer import HarParser

    with open(path, encoding="utf-8") as file:
        archive = json.load(file)
    with open(schema_path, encoding="utf-8") as file:
        validator = jsonschema.Draft202012Validator(
            json.load(file), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
        )
    problems = [f"{list(error.absolute_path)}: {error.message[:300]}" for error in validator.iter_errors(archive)]
    parser = HarParser(archive)
    return {
        "problems": problems[:20],
        "pages": [
            {"id": page.page_id, "title": page.title, "entries": len(page.entries)} for page in parser.pages
        ],
        "entries": [
            {"url": entry.url, "status": entry.status, "method": entry.request.method} for page in parser.pages
            for entry in page.entries
        ],
        "creator": parser.creator,
    }


def query(directory):
    os.chdir(directory)
    answers = []
    for text in json.load(sys.stdin):
        result = duckdb.sql(text)
        columns = result.columns
        rows = [dict(zip(columns, (str(value) if value is not None else None for value in row)))
                for row in result.fetchall()]
        answers.append(rows)
    return answers


if __name__ == "__main__":
    duckdb.sql("SET TimeZone = 'UTC'")
    print(json.dumps({"table": table, "har": har, "query": query}[sys.argv[1]](*sys.argv[2:])))
