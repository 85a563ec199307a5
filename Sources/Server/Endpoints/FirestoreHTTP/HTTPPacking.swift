// Bodies of requests that come compressed (Content-Encoding), as Google's own front ends take them.

import FirestoreModel
import NIOHTTP1

/// How a request's body is to be read.
enum HTTPPacking {
  /// As it is.
  case none
  /// Unpacked.
  case packed(CompressionAlgorithm)
  /// Not at all: the encoding has this name.
  case unknown(String)

  init(_ headers: HTTPHeaders) {
    let names = headers[canonicalForm: "content-encoding"].map { $0.lowercased() }.filter {
      $0 != "identity" && !$0.isEmpty
    }
    if names.isEmpty {
      self = .none
    } else if names.count == 1, let packing = CompressionAlgorithm(names[0]) {
      self = .packed(packing)
    } else {
      self = .unknown(names.joined(separator: ", "))
    }
  }

  /// The answer to a request whose encoding is not known.
  static func refusal(of name: String) -> HTTPResponse {
    var answer = HTTPResponse.error(
      .invalidArgument(
        "The Content-Encoding '\(name.prefix(40))' is not supported; send one of: gzip, deflate, identity."),
      as: .unsupportedMediaType)
    answer.headers.add(name: "accept-encoding", value: "gzip, deflate")
    return answer
  }
}

extension FirestoreError {
  /// The error of a body that was not unpacked.
  init(_ failure: Decompression.Failure, _ limit: Int) {
    switch failure {
    case .tooLarge: self = FirestoreRequestLimits.tooLarge(nil, limit)
    case .damaged(let reason):
      self = .invalidArgument("The compressed body of the request cannot be unpacked: \(reason).")
    }
  }
}
