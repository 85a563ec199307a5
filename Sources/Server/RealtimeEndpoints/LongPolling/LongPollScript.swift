// A long-poll script is JavaScript that the browser loads into an iframe of the client's page. Its calls pass
// the server's messages to the client. This file builds the scripts, and the page for the iframe.

import NIOCore
import NIOHTTP1
import Ports

enum LongPollScript {
  /// The script that ends the client's session.
  static let close = ByteBuffer(string: "pLPCommand('close');\n")

  /// Returns the JavaScript functions that all later scripts in the iframe call. They forward to functions of
  /// the client's page, whose names end in the callback number. They do nothing after the page has removed
  /// its functions.
  ///
  /// - Parameter callback: the callback number; digits only.
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

  /// Returns the disconnect page. When the browser unloads it together with the client's page, it notifies
  /// the server.
  static func disconnectFrame(id: String, password: String) -> ByteBuffer {
    ByteBuffer(
      string: """
        <!DOCTYPE html>
        <html><body><script>
        var isSent = false;
        function leave() {
          if (isSent) return;
          isSent = true;
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
  /// The response with a long-polling script. The status is always 200, because a script element cannot read
  /// it.
  static func script(_ text: ByteBuffer) -> HTTPResponse {
    HTTPResponse(text, contentType: "application/javascript; charset=utf-8")
  }

  /// The response with a long-polling page.
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
