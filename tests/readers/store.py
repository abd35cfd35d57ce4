"""A server on loopback that speaks S3, with one bucket; ends when its stdin does.

Prints its address. Then answers lines: `list` with the objects and the uploads not completed, `get KEY`
with length and SHA-256, `fail N` to refuse every part from the Nth on, `log` with what it was sent.
"""

import hashlib
import json
import os
import sys
import threading

os.environ.update(AWS_ACCESS_KEY_ID="key-1", AWS_SECRET_ACCESS_KEY="hush-4711", AWS_DEFAULT_REGION="us-east-1")

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    def log_request(self, *_):
        pass


class Failing:
    """Refuses parts from a given one on, and notes every request."""

    def __init__(self, app):
        self.app, self.from_part, self.seen = app, None, []

    def __call__(self, environ, start_response):
        target = environ["PATH_INFO"] + "?" + environ.get("QUERY_STRING", "")
        self.seen.append(f"{environ['REQUEST_METHOD']} {target}")
        part = dict(pair.partition("=")[::2] for pair in environ.get("QUERY_STRING", "").split("&")).get("partNumber")
        if part and self.from_part and int(part) >= self.from_part:
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code><AWSAccessKeyId>key-1</AWSAccessKeyId></Error>"]
        return self.app(environ, start_response)


application = Failing(DomainDispatcherApplication(create_backend_app))
server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}"
client = boto3.client("s3", endpoint_url=address)
client.create_bucket(Bucket="audit")
print(address, flush=True)

for line in sys.stdin:
    words = line.split()
    if words[0] == "list":
        objects = client.list_objects_v2(Bucket="audit").get("Contents", [])
        uploads = client.list_multipart_uploads(Bucket="audit").get("Uploads", [])
        answer = {"objects": [item["Key"] for item in objects], "uploads": [item["Key"] for item in uploads]}
    elif words[0] == "get":
        body = client.get_object(Bucket="audit", Key=words[1])["Body"].read()
        answer = {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    elif words[0] == "fail":
        application.from_part = int(words[1]) or None
        answer = {}
    else:
        answer = {"seen": application.seen}
    print(json.dumps(answer), flush=True)
