// The messages from clients to servers in protocol v5. Servers and clients share the types, so that a client encodes
// exactly the messages that a server decodes.

public import JSON
public import RealtimeModel

/// A message from a client to a server.
public enum ClientMessage: Sendable {
  /// A control message.
  case control(ClientControl)
  /// A request. The response has its number.
  case request(ClientRequest)
}

/// A control message from a client.
public enum ClientControl: Sendable, Equatable {
  /// Requests a pong.
  case ping
  /// Acknowledges that the session moves to this transport (from long polling to a WebSocket).
  case switchAcknowledged
  /// The last message on this transport.
  case endOfTransmission
  /// An unknown message, which is ignored.
  case unknown(String)
}

/// A request with its number, which the response repeats.
public struct ClientRequest: Sendable {
  /// The number, unique among the client's requests.
  public var number: Int64
  /// The action.
  public var action: ClientAction

  /// Creates a request.
  public init(_ number: Int64, _ action: ClientAction) {
    self.number = number
    self.action = action
  }
}

/// The action of a request.
public enum ClientAction: Sendable {
  /// Start to listen (`q`).
  case listen(ListenRequest)
  /// Stop listening (`n`); path, query and tag as in the listen.
  case unlisten(path: Path, query: QuerySpec, tag: Int64?)
  /// Read once (`g`).
  case get(path: Path, query: QuerySpec)
  /// Set (`p`); with a hash only if the existing value has that hash.
  case put(path: Path, data: Node, hash: String?)
  /// Update (`m`); the paths are relative, an empty node removes.
  case merge(path: Path, children: [(Path, Node)])
  /// Set when the client disconnects (`o`).
  case onDisconnectPut(path: Path, data: Node)
  /// Update when the client disconnects (`om`).
  case onDisconnectMerge(path: Path, children: [(Path, Node)])
  /// Cancel the onDisconnect operations at a path and below (`oc`).
  case onDisconnectCancel(path: Path)
  /// Present a credential (`auth`, `gauth`).
  case authenticate(AuthenticateRequest)
  /// Drop the credential (`unauth`).
  case unauthenticate
  /// Present an App Check token (`appcheck`).
  case appCheck(token: String)
  /// Drop the App Check token. The protocol's name for the action is `unappeck`.
  case dropAppCheck
  /// Report counters for the operator (`s`).
  case stats([String: Int64])
  /// An unknown action.
  case unknown(String)
  /// A known action with an invalid body, and the error to respond with.
  case invalid(String, RealtimeError)
}

/// A request to listen.
public struct ListenRequest: Sendable, Equatable {
  /// The location.
  public var path: Path
  /// The query. The default query selects the complete location.
  public var query: QuerySpec
  /// The client's tag of a filtered query.
  public var tag: Int64?
  /// The hash of the client's cached value. It is empty for an empty value. It is nil if the client sent no hash; the
  /// C++ SDK sends none.
  public var hash: String?
  /// The compound hash of the client's cached value, from clients that support range merges.
  public var compoundHash: CompoundHashFields?
  /// The query object exactly as sent, which a revocation of the listen must repeat.
  public var queryText: [UInt8]?

  /// Creates a request to listen.
  public init(
    path: Path, query: QuerySpec = .default, tag: Int64? = nil, hash: String? = nil,
    compoundHash: CompoundHashFields? = nil, queryText: [UInt8]? = nil
  ) {
    self.path = path
    self.query = query
    self.tag = tag
    self.hash = hash
    self.compoundHash = compoundHash
    self.queryText = queryText
  }
}

/// The fields of a compound hash (`ch`): the ends of the ranges and the hashes of the ranges.
public struct CompoundHashFields: Sendable, Equatable {
  /// The path of the last leaf of every range except the open range at the end.
  public var posts: [String]
  /// The hashes: one more than posts.
  public var hashes: [String]

  /// Creates a compound hash.
  public init(posts: [String], hashes: [String]) {
    self.posts = posts
    self.hashes = hashes
  }

  /// Converts a compound hash. A range that ends at the location itself has the path `/`.
  public init(_ hash: CompoundHash) {
    self.init(posts: hash.paths.map { $0.isRoot ? "/" : $0.description }, hashes: hash.hashes)
  }
}

/// A request to authenticate.
public struct AuthenticateRequest: Sendable, Equatable {
  /// The identity that an administrator assumes for the rules.
  public enum Override: Sendable, Equatable {
    /// An unauthenticated user (`noauth`).
    case nobody
    /// This `auth` variable (`authvar`).
    case variable(JSONValue)
  }

  /// The credential.
  public var credential: String
  /// Whether the action is `gauth`, for credentials other than JSON Web Tokens.
  public var isOpaque: Bool
  /// The identity to assume.
  public var override: Override?

  /// Creates a request to authenticate.
  public init(credential: String, isOpaque: Bool = false, override: Override? = nil) {
    self.credential = credential
    self.isOpaque = isOpaque
    self.override = override
  }
}
