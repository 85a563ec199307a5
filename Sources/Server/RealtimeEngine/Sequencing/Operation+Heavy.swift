// Heavy writes: checked where they are submitted, and filled in beside the sequencer, so that they hold nobody up.

import RealtimeModel

extension RealtimeOperation {
  /// Whether it reads, or takes apart what was registered, or works in the background, so that others may pass it when a batch has taken long enough. Not what
  /// was read aside already.
  var isThrottled: Bool {
    switch action {
    case .get, .getShallow, .listen, .buildIndexes, .followWhole, .cancelOnDisconnect:
      largeRead == nil && window == nil
    default: false
    }
  }

  /// The most bytes of JSON that the operation may carry.
  func mostBytes(_ limits: RealtimeLimits) -> Int {
    if case .connection = origin { return limits.socketWriteBytes }
    return limits.restWriteBytes
  }

  /// Checks a heavy write here, on the thread of whoever submits it.
  mutating func checkIfHeavy(_ limits: RealtimeLimits, _ staging: StagingLimits) {
    guard weight > staging.heavyBytes, case .write(let write, _) = action else { return }
    let bytes = mostBytes(limits)
    checked = Result { () throws(RealtimeError) in try WriteRequest(write, limits: limits, bytes: bytes) }
  }

  /// What its commit weighs when this was filled in beforehand.
  func weight(without staged: StagedWrite) -> Int {
    guard case .success(let request)? = checked else { return weight }
    let size = request.changes.reduce(0) { $0 + $1.value.estimatedSize }
    var rest = 64 + RowWeight.logged(request.changes.count, estimatedSize: size)
    for (position, change) in request.changes.enumerated() {
      if let (_, deferred) = staged.changes[position] {
        // A value that the server computes is a number.
        for path in deferred { rest += RowWeight.path(change.path.appending(path)) + 32 }
      } else {
        rest += RowWeight.change(change.path, change.value)
      }
    }
    return rest
  }
}
