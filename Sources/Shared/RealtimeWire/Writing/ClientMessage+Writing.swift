// Writes the messages of a client. The fields have the order that servers read fastest: number, action, body. The
// paths of requests start with a slash.

import JSON
public import RealtimeModel

extension ClientMessage {
  /// The message as JSON, before it is split into frames.
  public func json() -> [UInt8] {
    var writer = JSONWriter()
    switch self {
    case .control(let control):
      writer.beginObject()
      writer.key("t")
      writer.string("c")
      writer.key("d")
      writer.beginObject()
      writer.key("t")
      switch control {
      case .ping: writer.string("p")
      case .switchAcknowledged: writer.string("a")
      case .endOfTransmission: writer.string("n")
      case .unknown(let name): writer.string(name)
      }
      writer.key("d")
      writer.beginObject()
      writer.endObject()
      writer.endObject()
      writer.endObject()
    case .request(let request):
      writer.beginData()
      writer.key("r")
      writer.int(request.number)
      writer.key("a")
      writer.string(request.action.name)
      writer.key("b")
      writer.beginObject()
      request.action.writeBody(&writer)
      writer.endObject()
      writer.endData()
    }
    return writer.bytes
  }
}

extension ClientAction {
  /// The action's name on the wire.
  public var name: String {
    switch self {
    case .listen: "q"
    case .unlisten: "n"
    case .get: "g"
    case .put: "p"
    case .merge: "m"
    case .onDisconnectPut: "o"
    case .onDisconnectMerge: "om"
    case .onDisconnectCancel: "oc"
    case .authenticate(let request): request.isOpaque ? "gauth" : "auth"
    case .unauthenticate: "unauth"
    case .appCheck: "appcheck"
    case .dropAppCheck: "unappeck"
    case .stats: "s"
    case .unknown(let name), .invalid(let name, _): name
    }
  }

  fileprivate func writeBody(_ writer: inout JSONWriter) {
    switch self {
    case .listen(let listen):
      writer.path(listen.path)
      if let text = listen.queryText {
        writer.key("q")
        writer.raw(text)
      } else if !listen.query.isDefault {
        writer.query(listen.query)
      }
      writer.tag(listen.tag)
      writer.key("h")
      writer.string(listen.hash ?? "")
      if let compound = listen.compoundHash { writer.compoundHash(compound) }
    case .unlisten(let path, let query, let tag):
      writer.path(path)
      if !query.isDefault { writer.query(query) }
      writer.tag(tag)
    case .get(let path, let query):
      writer.path(path)
      writer.query(query)
    case .put(let path, let data, let hash):
      writer.path(path)
      writer.key("d")
      writer.node(data)
      if let hash {
        writer.key("h")
        writer.string(hash)
      }
    case .onDisconnectPut(let path, let data):
      writer.path(path)
      writer.key("d")
      writer.node(data)
    case .merge(let path, let children), .onDisconnectMerge(let path, let children):
      writer.path(path)
      writer.key("d")
      writer.children(children)
    case .onDisconnectCancel(let path):
      writer.path(path)
      writer.key("d")
      writer.null()
    case .authenticate(let request):
      writer.key("cred")
      writer.string(request.credential)
      switch request.override {
      case .nobody:
        writer.key("noauth")
        writer.bool(true)
      case .variable(let value):
        writer.key("authvar")
        writer.write(value)
      case nil: break
      }
    case .appCheck(let token):
      writer.key("token")
      writer.string(token)
    case .stats(let counters):
      writer.key("c")
      writer.beginObject()
      for (name, count) in counters.sorted(by: { $0.key < $1.key }) {
        writer.key(name)
        writer.int(count)
      }
      writer.endObject()
    case .unauthenticate, .dropAppCheck, .unknown, .invalid: break
    }
  }
}

extension QuerySpec {
  /// The query object of requests, as JSON.
  public func json() -> [UInt8] {
    var writer = JSONWriter()
    writer.fields(of: self)
    return writer.bytes
  }
}

extension JSONWriter {
  fileprivate mutating func path(_ path: Path) {
    key("p")
    string(path.absolute)
  }

  fileprivate mutating func tag(_ tag: Int64?) {
    guard let tag else { return }
    key("t")
    int(tag)
  }

  fileprivate mutating func query(_ query: QuerySpec) {
    key("q")
    fields(of: query)
  }

  fileprivate mutating func fields(of query: QuerySpec) {
    beginObject()
    for (name, value) in query.wireFields {
      key(name)
      if let value { leaf(value) } else { null() }
    }
    endObject()
  }

  fileprivate mutating func compoundHash(_ fields: CompoundHashFields) {
    key("ch")
    beginObject()
    key("ps")
    beginArray()
    for post in fields.posts { string(post) }
    endArray()
    key("hs")
    beginArray()
    for hash in fields.hashes { string(hash) }
    endArray()
    endObject()
  }
}
