// The scripts and the page that long polling answers with, which browsers load into an iframe of the client's page.

import NIOCore
import NIOHTTP1

enum LongPollScript {
  /// Tells the client that its session is over.
  static let close = ByteBuffer(string: "pLPCommand('close');\n")

  /// Defines the functions that all later scripts in the iframe call: they hand over to those of the client's page, whose
  /// names end in the client's number. Once the page has given up they do nothing.
  ///
  /// - Parameter callback: the number; digits only.
  static func functions(callback: String) -> ByteBuffer {
    var script = ByteBuffer()
    for name in ["pLPCommand", "pRTLPCB"] {
      script.writeString(
        """
        function \(name)() {
          var target = parent.window["\(name)\(callback)"];
          if (target) target.apply(null, arguments);
        }

        """)
    }
    return script
  }

  /// The page that tells the server when it goes, and with it the client.
  static func disconnectFrame(id: String, password: String) -> ByteBuffer {
    ByteBuffer(
      string: """
        <!DOCTYPE html>
        <html><body><script>
        var told = false;
        function leave() {
          if (told) return;
          told = true;
          var address = "/.lp?disconn=t&id=\(id)&pw=\(password)";
          if (window.fetch) {
            window.fetch(address, { keepalive: true });
          } else {
            var request = new XMLHttpRequest();
            request.open("GET", address, false);
            request.send();
          }
        }
        window.addEventListener("pagehide", leave);
        window.addEventListener("unload", leave);
        </script></body></html>

        """)
  }
}

extension HTTPResponse {
  /// A script of long polling; its status says nothing, since whoever loads a script does not hear it.
  static func script(_ text: ByteBuffer) -> HTTPResponse {
    HTTPResponse(text, contentType: "application/javascript; charset=utf-8")
  }

  /// A page of long polling.
  static func page(_ text: ByteBuffer) -> HTTPResponse {
    HTTPResponse(text, contentType: "text/html; charset=utf-8")
  }

  private init(_ text: ByteBuffer, contentType: String) {
    self.init(.ok)
    headers.replaceOrAdd(name: "cache-control", value: "no-cache, no-store")
    headers.add(name: "content-type", value: contentType)
    headers.add(name: "x-content-type-options", value: "nosniff")
    body = text
  }
}
