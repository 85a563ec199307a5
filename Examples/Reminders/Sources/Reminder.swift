// A reminder, as the app and the database share it.

import FirebaseFirestore
import Foundation

/// A task of the list.
struct Reminder: Codable {
  /// The document's name, set when the document is read.
  @DocumentID var id: String?
  var title: String
  var isDone = false
  /// Set by the server, so every terminal shows the same order.
  @FirebaseFirestore.ServerTimestamp var created: Date?

  /// The reminder as a line of the list.
  var line: String { "[\(isDone ? "x" : " ")] \(title)" }
}
