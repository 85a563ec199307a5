// A fuzz target. It accepts any bytes, must neither crash nor hang, and throws if its property does not hold.
// The tests run each target over its corpus.

/// A target. Its name is also the name of its corpus.
enum FuzzTarget: String, CaseIterable, Sendable {
  case json, websocket, grpc, protobuf, paths, index
  case rules, messages, webchannel, longpoll, stream, realtimequery, query, export, inflation,
    authentication, identity, firestorecache, firestorebundle, firestoremessages, clientcache, clientmessages,
    ruleexpressions

  /// Runs the target on an input.
  /// - Throws: ``PropertyFailure`` if the property does not hold.
  func run(_ input: UnsafeRawBufferPointer) throws {
    switch self {
    case .json: try fuzzJSON(input)
    case .websocket: try fuzzWebSocket(input)
    case .grpc: try fuzzGRPC(input)
    case .protobuf: try fuzzProtobuf(input)
    case .paths: try fuzzPaths(input)
    case .index: try fuzzIndexKeys(input)
    case .rules: try fuzzRules(input)
    case .messages: try fuzzRESTJSON(input)
    case .webchannel: try fuzzWebChannel(input)
    case .longpoll: try fuzzLongPolling(input)
    case .stream: try fuzzNodeStream(input)
    case .realtimequery: try fuzzRealtimeQuery(input)
    case .query: try fuzzQuery(input)
    case .export: try fuzzExport(input)
    case .inflation: try fuzzInflation(input)
    case .authentication: try fuzzAuthentication(input)
    case .identity: try fuzzIdentity(input)
    case .firestorecache: try fuzzFirestoreCache(input)
    case .firestorebundle: try fuzzFirestoreBundle(input)
    case .firestoremessages: try fuzzFirestoreMessages(input)
    case .clientcache: try fuzzClientCache(input)
    case .clientmessages: try fuzzClientMessages(input)
    case .ruleexpressions: try fuzzRuleExpressions(input)
    }
  }
}
