"""The only web page of the lab, served over TLS, which clients require."""

import http.server
import ssl
import threading

WORDS = "The lab is open from nine to five."
# For 127.0.0.1, valid until 2120. Trusted only by processes of a run that are given it.
CERTIFICATE = (
    "MIIBWDCB/qADAgECAgEBMAoGCCqGSM49BAMCMBIxEDAOBgNVBAMMB3RoZSBsYWIwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAx"
    "MDEwMDAwMDBaMBIxEDAOBgNVBAMMB3RoZSBsYWIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASFlWBhE5MDIJbw/iEgCUZo"
    "MnrrvPM386ko/s+2PSyAUxlunOmwlBFsdlbqVaGwW3LSLQ8iCRdJKXhTzY6Jaxalo0MwQTAPBgNVHREECDAGhwR/AAABMA8G"
    "A1UdEwEB/wQFMAMBAf8wHQYDVR0OBBYEFHh8t1/EJ+OFl/vu2puKM3DTkP7FMAoGCCqGSM49BAMCA0kAMEYCIQDMpi0zMfEA"
    "bd3v/OhRCh6X0k0vbWlc2XrjFAkynToEMwIhAJ2d+TGkbFLWyeF3wfq2wl+5ErZ+bM3bbAMKoVYHmyTT"
)
KEY = (
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgavT3UHTvMhWE2BWehjjfiJLma1w7t9GdLqYZ/yVFCzuhRANC"
    "AASFlWBhE5MDIJbw/iEgCUZoMnrrvPM386ko/s+2PSyAUxlunOmwlBFsdlbqVaGwW3LSLQ8iCRdJKXhTzY6Jaxal"
)


class Page:
    """Serves the page until it is closed."""

    def __init__(self, folder):
        self.certificate = folder / "page.pem"
        self.certificate.write_text(pem("CERTIFICATE", CERTIFICATE))
        key = folder / "page-key.pem"
        key.write_text(pem("PRIVATE KEY", KEY))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"<html><body><h1>The lab</h1><p>{WORDS}</p></body></html>".encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """The fetched text is in the request to the model."""


def pem(kind, text):
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])
