// Resolves limbo documents. A view contains such a document because its cached contents match the query,
// although the server did not report it for the target. A separate target for each limbo document requests
// its state.
//
// Invariant: at most `maxLimboResolutions` are in flight. Each document is requested only once, and only
// while it is in limbo in some view.

import FirestoreModel

extension SyncEngine {
  mutating func trackLimbo(_ changes: [LimboChange], of target: TargetID) {
    for change in changes {
      switch change {
      case .entered(let name):
        limboReferences[name, default: []].insert(target)
        guard limboTargets[name] == nil, !enqueuedLimbo.contains(name) else { continue }
        enqueuedLimbo.append(name)
        startLimboResolutions()
      case .left(let name):
        dropLimboReference(to: name, of: target)
      }
    }
  }

  mutating func dropLimboReferences(of target: TargetID) {
    for (name, targets) in limboReferences where targets.contains(target) {
      dropLimboReference(to: name, of: target)
    }
  }

  private mutating func dropLimboReference(to name: DocumentName, of target: TargetID) {
    limboReferences[name]?.remove(target)
    guard limboReferences[name]?.isEmpty == true else { return }
    limboReferences[name] = nil
    enqueuedLimbo.removeAll { $0 == name }
    guard let resolution = limboTargets.removeValue(forKey: name) else { return }
    unlistenRemotely(resolution)
    limboResolutions[resolution] = nil
    startLimboResolutions()
  }

  /// Starts resolutions until the maximum number is in flight.
  mutating func startLimboResolutions() {
    while !enqueuedLimbo.isEmpty, limboTargets.count < maxLimboResolutions {
      let name = enqueuedLimbo.removeFirst()
      lastLimboTarget += 2
      limboTargets[name] = lastLimboTarget
      limboResolutions[lastLimboTarget] = LimboResolution(name: name)
      listenRemotely(TargetData(target: .document(name), id: lastLimboTarget, purpose: .limboResolution))
    }
  }
}
