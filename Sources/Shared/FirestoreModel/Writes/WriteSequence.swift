// Checks the sequence of writes in one commit. Some sequences of writes to one document fail whatever the database
// contains, and are rejected before the commit runs. Google's emulator rejects the same sequences.

extension Collection where Element == Write {
  /// Checks two rules of a commit. If a write verifies a document, no other write may address it. If a write creates a
  /// document, no earlier write may create or update it.
  ///
  /// - Throws: INVALID_ARGUMENT for the first write that breaks a rule.
  public func validateSequence() throws(FirestoreError) {
    guard count > 1 else { return }
    var last: [ResourcePath: Write] = [:]
    for write in self {
      guard let earlier = last.updateValue(write, forKey: write.document.path) else { continue }
      switch (earlier.operation, write.operation) {
      case (.verify, .verify):
        throw .invalidArgument("Cannot verify \(write.document) more than once in a commit.")
      case (.verify, _):
        throw .invalidArgument("Cannot verify \(write.document) and then write it in the same commit.")
      case (_, .verify):
        throw .invalidArgument("Cannot write \(write.document) and then verify it in the same commit.")
      case (.delete, _): break
      default:
        if write.precondition == .exists(false) {
          throw .invalidArgument(
            "Cannot create \(write.document): an earlier write of the same commit creates or updates it.")
        }
      }
    }
  }
}
