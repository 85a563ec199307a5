// Whose turn it is to export.

/// Lets one export after the other go on, in the order in which they came: two could be asked for the same directory.
actor ExportTurn {
  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Waits for the turn.
  func take() async {
    guard isTaken else { return isTaken = true }
    await withCheckedContinuation { waiting.append($0) }
  }

  /// Gives the turn to whoever has waited longest.
  func give() {
    if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
  }
}
