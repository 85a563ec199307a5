// Parses the Content-Encoding header of a request. The server accepts compressed bodies because Google's servers do.

import NIOHTTP1

/// The encoding of a request's body.
enum ContentEncoding {
  case identity
  case compressed(CompressionAlgorithm)
  /// An encoding that the server does not support, by its name.
  case unsupported(String)

  /// Reads the headers of a request.
  init(_ headers: HTTPHeaders) {
    let names = headers[canonicalForm: "content-encoding"].map { $0.lowercased() }.filter {
      $0 != "identity" && !$0.isEmpty
    }
    if names.isEmpty {
      self = .identity
    } else if names.count == 1, let algorithm = CompressionAlgorithm(names[0]) {
      self = .compressed(algorithm)
    } else {
      self = .unsupported(names.joined(separator: ", "))
    }
  }
}
