// Describes the errors of the HTTP/1.1 parser for the client.

import NIOHTTP1

extension HTTPParserError {
  /// The error as a sentence that names the invalid part or the allowed values.
  var reason: String { "The request is not valid HTTP/1.1: \(fault)." }

  private var fault: String {
    switch self {
    case .headerOverflow:
      "its target or one of its headers is longer than 80 KiB, or it has more than 256 headers or 2 MiB of them"
    case .invalidVersion: "its version is not HTTP/1.0 or HTTP/1.1"
    case .invalidMethod: "its method is not known, or the line does not begin with a method"
    case .invalidURL: "its target is not a path or a URL without spaces and control characters"
    case .invalidHeaderToken, .invalidCharactersUsed:
      "a header is not 'Name: value' with a token as its name and no control characters in its value"
    case .invalidContentLength: "Content-Length is not one number of bytes"
    case .unexpectedContentLength:
      "it may have one Content-Length, or Transfer-Encoding in its place"
    case .invalidChunkSize: "a chunk's size is not a hexadecimal number"
    case .lfExpected: "a line does not end in CR LF"
    case .invalidEOFState, .closedConnection: "it ends before it is complete"
    case .unknown:
      "its Transfer-Encoding is not chunked or occurs together with a Content-Length, or a line does not end in CR LF"
    default: "it cannot be parsed"
    }
  }
}
