// The error for a value that the database does not accept.

import RealtimeModel

/// A value that the database does not accept: the reason, and the path of the invalid part.
struct InvalidValue: Error {
  let reason: String
  let path: [String]

  init(_ reason: String, at path: [String]) {
    self.reason = reason
    self.path = path
  }

  var message: String {
    path.isEmpty ? reason : "\(reason) at path '\(path.joined(separator: "/"))'"
  }
}
