// The reason for which a value of the app is invalid.

import RealtimeModel

/// A value that the database does not accept, with the position of the fault.
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
