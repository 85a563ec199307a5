// Limbo: documents that a view shows although the server did not count them to its target, because
// the cache still matches them. Each is asked for by itself to find out what became of it.
//
// Invariant: at most `maxLimboResolutions` are under way; a document is asked for only once, and
// only while some view holds it in limbo.

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

  /// Starts as many resolutions as may be under way.
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
