// What a client may say in protocol v5, as types. Server and client share them: the client encodes
// exactly what the server decodes.

public import JSON
public import RealtimeModel

/// A message from a client to a server.
public enum ClientMessage: Sendable {
  /// A control message.
  case control(ClientControl)
  /// A request, which the server answers by its number.
  case request(ClientRequest)
}

/// A control message from a client.
public enum ClientControl: Sendable, Equatable {
  /// Asks for a sign of life.
  case ping
  /// Acknowledges the switch to this transport.
  case switchAcknowledged
  /// Nothing more will come on this transport.
  case endOfTransmission
  /// Anything else, which is ignored.
  case unknown(String)
}

/// A request with the number its answer will carry.
public struct ClientRequest: Sendable {
  /// The number, unique among the client's requests.
  public var number: Int64
  /// What is asked for.
  public var action: ClientAction

  /// Creates a request.
  public init(_ number: Int64, _ action: ClientAction) {
    self.number = number
    self.action = action
  }
}

/// What a request asks for.
public enum ClientAction: Sendable {
  /// Begin to listen (`q`).
  case listen(ListenRequest)
  /// Stop listening (`n`); path, query and tag as in the listen.
  case unlisten(path: Path, query: QuerySpec, tag: Int64?)
  /// Read once (`g`).
  case get(path: Path, query: QuerySpec)
  /// Set (`p`); with a hash only if the value there still has it.
  case put(path: Path, data: Node, hash: String?)
  /// Update (`m`); the paths are relative, an empty node removes.
  case merge(path: Path, children: [(Path, Node)])
  /// Set when the client disconnects (`o`).
  case onDisconnectPut(path: Path, data: Node)
  /// Update when the client disconnects (`om`).
  case onDisconnectMerge(path: Path, children: [(Path, Node)])
  /// Forget what was to happen on disconnection at a path and below (`oc`).
  case onDisconnectCancel(path: Path)
  /// Present a credential (`auth`, `gauth`).
  case authenticate(AuthenticateRequest)
  /// Drop the credential (`unauth`).
  case unauthenticate
  /// Present an App Check token (`appcheck`).
  case appCheck(token: String)
  /// Drop the App Check token; the protocol's own name for it is `unappeck`.
  case dropAppCheck
  /// Counters for the operator (`s`).
  case stats([String: Int64])
  /// An action this protocol does not have.
  case unknown(String)
  /// A known action whose body cannot be understood, with the answer it deserves.
  case invalid(String, RealtimeError)
}

/// A request to listen.
public struct ListenRequest: Sendable, Equatable {
  /// The location.
  public var path: Path
  /// The query; the default one for the whole location.
  public var query: QuerySpec
  /// The client's number of a query that filters.
  public var tag: Int64?
  /// The hash of what the client has; empty when it has nothing, absent when it does not say, as the C++ SDK's listens.
  public var hash: String?
  /// Hashes of ranges of what the client has, from clients that understand range merges.
  public var compoundHash: CompoundHashFields?
  /// The query object as it was sent, byte for byte; revoking a listen must repeat it.
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

/// The fields of a compound hash (`ch`): where ranges end, and the hash of each.
public struct CompoundHashFields: Sendable, Equatable {
  /// The path of the last leaf of every range but the open one at the end.
  public var posts: [String]
  /// The hashes; one more than there are posts.
  public var hashes: [String]

  /// Creates a compound hash.
  public init(posts: [String], hashes: [String]) {
    self.posts = posts
    self.hashes = hashes
  }

  /// The fields of a compound hash; a post at the location itself is a slash.
  public init(_ hash: CompoundHash) {
    self.init(posts: hash.paths.map { $0.isRoot ? "/" : $0.description }, hashes: hash.hashes)
  }
}

/// A request to authenticate.
public struct AuthenticateRequest: Sendable, Equatable {
  /// Who an administrator wants to be for the rules.
  public enum Override: Sendable, Equatable {
    /// Nobody (`noauth`).
    case nobody
    /// This (`authvar`).
    case variable(JSONValue)
  }

  /// The credential.
  public var credential: String
  /// Whether it came as `gauth`, for credentials that do not look like a JSON Web Token.
  public var isOpaque: Bool
  /// Whom to be instead.
  public var override: Override?

  /// Creates a request to authenticate.
  public init(credential: String, isOpaque: Bool = false, override: Override? = nil) {
    self.credential = credential
    self.isOpaque = isOpaque
    self.override = override
  }
}
