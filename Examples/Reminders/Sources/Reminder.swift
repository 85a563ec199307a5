// A reminder, as the app and the database represent it.

import FirebaseFirestore
import Foundation

/// A task on the list.
struct Reminder: Codable {
  /// The document's ID, which is set when the document is read.
  @DocumentID var id: String?
  var title: String
  var isDone = false
  /// The time at which the reminder was created. The server sets it, so that every terminal shows the same
  /// order.
  @FirebaseFirestore.ServerTimestamp var created: Date?

  /// A description of the reminder on one line.
  var line: String { "[\(isDone ? "x" : " ")] \(title)" }
}
