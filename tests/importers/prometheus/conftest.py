"""A real Prometheus server over a history that promtool writes."""

import shutil
import socket
import subprocess
import time
import urllib.request

import pytest


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def served(tmp_path):
    """Starts Prometheus over OpenMetrics text and returns its address."""
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        pytest.skip("needs Debian's package prometheus")
    running = []

    def start(text):
        (tmp_path / "history.txt").write_text(text)
        (tmp_path / "prometheus.yml").write_text("global: {scrape_interval: 1h}\n")
        create = ["promtool", "tsdb", "create-blocks-from", "openmetrics"]
        files = [str(tmp_path / "history.txt"), str(tmp_path / "data")]
        subprocess.run([*create, *files], check=True, capture_output=True)
        port = free_port()
        server = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={tmp_path}/prometheus.yml",
                f"--storage.tsdb.path={tmp_path}/data",
                "--storage.tsdb.retention.time=100y",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        running.append(server)
        address = f"http://127.0.0.1:{port}"
        ready(address, server)
        return address

    yield start
    for server in running:
        server.kill()
        server.wait()


def ready(address, server):
    for _ in range(600):
        assert server.poll() is None, "prometheus ended"
        try:
            with urllib.request.urlopen(f"{address}/-/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail("prometheus did not get ready")
