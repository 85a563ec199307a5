// The endpoint that parses fuzzed requests: without a port, over an engine in memory that receives no calls.

import Access
import Logging
import OrderedStore
import RealtimeEngine

@testable import RealtimeEndpoints

enum FuzzedEndpoint {
  static let realtime: RealtimeEndpoint = {
    guard let store = try? MemoryStore() else { preconditionFailure("no store in memory") }
    return RealtimeEndpoint(
      engine: RealtimeEngine(store: store, policy: OpenPolicy()), authentication: .emulator,
      defaultNamespace: "demo", log: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() })
  }()
}
