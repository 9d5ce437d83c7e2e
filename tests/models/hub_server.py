"""A stand-in of the Hugging Face Hub on this machine: repositories with commits, over the HTTP API of the real one."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

Files = dict[str, bytes]


@dataclass
class Repository:
    """Commits, and the names of some of them."""

    private: bool = False
    commits: dict[str, Files] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def commit(self, branch: str, files: Files, message: str) -> str:
        """Add a commit on top of a branch."""
        whole = {**self.files(branch), **files}
        sha = hashlib.sha1(repr((sorted(whole.items()), len(self.commits))).encode()).hexdigest()
        self.commits[sha], self.names[branch] = whole, sha
        self.messages.append(message)
        return sha

    def sha(self, revision: str) -> str | None:
        """Return the commit of a branch or of a hash."""
        return self.names.get(revision) or (revision if revision in self.commits else None)

    def files(self, revision: str) -> Files:
        """Return the files of a revision."""
        return self.commits.get(self.sha(revision) or "", {})


@dataclass
class Hub:
    """The Hub: what it has, and what was asked of it."""

    address: str = ""
    token: str = "hf_a_token"
    repositories: dict[str, Repository] = field(default_factory=dict)
    uploads: Files = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    fails_with: int | None = None


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        self._answer(self._body())

    do_PUT = do_GET = do_HEAD = do_POST  # noqa: N815

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, body: bytes) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append(f"{self.command} {path}")
        if self.hub.fails_with is not None:
            return self._send(self.hub.fails_with, {"error": "not today"})
        for command, pattern, answer in self._routes():
            if self.command in command and (found := re.fullmatch(pattern, path)):
                return answer(body, *found.groups())
        return self._send(404, {"error": f"no route {path}"})

    def _routes(self) -> list[tuple[tuple[str, ...], str, Any]]:
        name = r"([\w.-]+/[\w.-]+)"
        return [
            (("POST",), "/api/repos/create", self._create),
            (("POST",), "/api/validate-yaml", self._validate),
            (("POST",), rf"/api/models/{name}/preupload/(.+)", self._preupload),
            (("POST",), rf"/{name}\.git/info/lfs/objects/batch", self._batch),
            (("PUT",), r"/upload/(\w+)", self._upload),
            (("POST",), rf"/api/models/{name}/commit/(.+)", self._commit),
            (("GET",), rf"/api/models/{name}/revision/(.+)", self._info),
            (("GET",), rf"/api/models/{name}/tree/([^/]+)", self._tree),
            (("GET", "HEAD"), rf"/{name}/resolve/([^/]+)/(.+)", self._file),
        ]

    def _send(self, code: int, content: Any, headers: dict[str, str] | None = None) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(code)
        for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _may(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.hub.token}"

    def _refuse(self) -> None:
        self._send(401, {"error": "Invalid username or password."})

    def _repository(self, name: str, revision: str | None = None) -> Repository | None:
        found = self.hub.repositories.get(name)
        if found is None or (found.private and not self._may()):
            self._send(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
            return None
        if revision is not None and found.sha(revision) is None:
            self._send(404, {"error": f"Invalid rev id: {revision}"}, {"X-Error-Code": "RevisionNotFound"})
            return None
        return found

    def _create(self, body: bytes) -> None:
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}"
        if not self._may():
            return self._refuse()
        address = {"url": f"{self.hub.address}/{name}", "name": name}
        if name in self.hub.repositories:
            return self._send(409, {**address, "error": "You already created this model repo"})
        self.hub.repositories[name] = made = Repository(private=asked.get("visibility") == "private")
        made.commit("main", {".gitattributes": b"*.safetensors filter=lfs\n"}, "initial commit")
        return self._send(200, address)

    def _validate(self, body: bytes) -> None:
        """Check the metadata of a model card for what the Hub's documentation asks for."""
        head = re.match(r"---\n(.*?)\n---\n", json.loads(body)["content"], re.DOTALL)
        data = yaml.safe_load(head[1]) if head else None
        errors = [] if isinstance(data, dict) else ["no metadata"]
        for key, kind in {"tags": list, "library_name": str, "pipeline_tag": str, "base_model": str}.items():
            if data and key in data and not isinstance(data[key], kind):
                errors.append(f"{key} is no {kind.__name__}")
        for entry in (data or {}).get("model-index", []):
            errors += [
                "a result lacks its task, data set or metrics"
                for result in entry["results"]
                if not {"task", "dataset", "metrics"} <= result.keys() or "name" not in result["dataset"]
            ]
        self._send(400 if errors else 200, {"errors": [{"message": text} for text in errors], "warnings": []})

    def _preupload(self, body: bytes, name: str, branch: str) -> None:
        if self._repository(name, branch) is None:
            return
        files = [one["path"] for one in json.loads(body)["files"]]
        modes = {path: "lfs" if path.endswith(".safetensors") else "regular" for path in files}
        answers = [{"path": path, "uploadMode": mode, "shouldIgnore": False} for path, mode in modes.items()]
        self._send(200, {"files": answers})

    def _batch(self, body: bytes, name: str) -> None:
        objects = json.loads(body)["objects"]
        actions = [
            {**one, "actions": {"upload": {"href": f"{self.hub.address}/upload/{one['oid']}"}}} for one in objects
        ]
        self._send(200, {"transfer": "basic", "objects": actions})

    def _upload(self, body: bytes, oid: str) -> None:
        if hashlib.sha256(body).hexdigest() != oid:
            return self._send(400, {"error": "not what was announced"})
        self.hub.uploads[oid] = body
        return self._send(200, {})

    def _commit(self, body: bytes, name: str, branch: str) -> None:
        if not self._may():
            return self._refuse()
        if (found := self._repository(name, branch)) is None:
            return None
        files: Files = {}
        message = ""
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            match line["key"]:
                case "header":
                    message = value["summary"]
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = self.hub.uploads[value["oid"]]
        sha = found.commit(branch, files, message)
        return self._send(200, {"commitUrl": f"{self.hub.address}/{name}/commit/{sha}", "commitOid": sha})

    def _info(self, _: bytes, name: str, revision: str) -> None:
        if found := self._repository(name, revision):
            siblings = [{"rfilename": path} for path in found.files(revision)]
            self._send(200, {"id": name, "sha": found.sha(revision), "siblings": siblings})

    def _tree(self, _: bytes, name: str, revision: str) -> None:
        if found := self._repository(name, revision):
            rows = [
                {"type": "file", "path": path, "size": len(content), "oid": _git_oid(content)}
                for path, content in found.files(revision).items()
            ]
            self._send(200, rows)

    def _file(self, _: bytes, name: str, revision: str, path: str) -> None:
        if found := self._repository(name, revision):
            content = found.files(revision).get(path)
            if content is None:
                return self._send(404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})
            sha = str(found.sha(revision))
            return self._send(200, content, {"ETag": f'"{_git_oid(content)}"', "X-Repo-Commit": sha})
        return None


def _git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@contextmanager
def running_hub() -> Iterator[Hub]:
    """Run a hub on a free port."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
