// The validation of a call's reads. A short validation runs in the sequencer. A long one first runs on a reader thread,
// and the sequencer then validates only the changes that were made since. So old or large reads do not delay other calls.
//
// Invariant: the sequencer validates every change between the version of `reads` and the call's own version.

/// The reads of one call, and the version up to which they are validated.
struct ReadValidation: Sendable {
  /// The number of validations on reader threads after which the sequencer validates everything. More than one is
  /// needed only if thousands of keys change during a validation.
  static let maximumAttempts = 3
  /// The maximum number of keys that the sequencer looks up in the stored rows.
  static let maximumKeys = 100

  /// The reads. Their version rises with each validation.
  var reads: ReadSet
  /// Whether a change was found.
  var hasChanged = false
  /// The number of validations on reader threads.
  var attempts = 0

  init(_ reads: ReadSet) { self.reads = reads }

  /// Whether the sequencer defers the call to a reader thread if ``RecentWrites`` cannot validate its reads quickly.
  var mayDefer: Bool {
    attempts < ReadValidation.maximumAttempts
      && (!reads.ranges.isEmpty || reads.keys.count > ReadValidation.maximumKeys)
  }
}

extension OpenDatabase {
  /// Validates reads in the published state. Runs on a reader thread.
  func validate(_ validation: ReadValidation) throws -> ReadValidation {
    var validation = validation
    let published = try publishedState.publishedView()
    validation.attempts += 1
    guard validation.reads.version >= published.floor else {
      validation.hasChanged = true
      return validation
    }
    let search = ChangeSearch(reader(published, .disk), OrderedMap())
    validation.hasChanged = try search.hasChanged(since: validation.reads)
    validation.reads.version = max(validation.reads.version, published.latest)
    return validation
  }
}
