// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title The posted curves, one per market, and how much of each has been taken.
/// @notice A market is an unordered token pair; its id is keccak256(abi.encodePacked(token0, token1)) with token0 < token1.
/// A curve is a list of segments per side, best price first: `length` base units at a marginal price of `subticks`, where a
/// subtick is 1/256 of a tick. The exact cost of a walk is G = sum(subticks x base units), an integer, and
/// quote units = G x tickLotUnits / (lotUnits x 256), rounded once, at the end, in the vault's favour.
///
/// Swaps write counters only and posts write prices only, each to its own words, so neither can block the other or depend on which comes
/// first: what is consumed of a curve is (counter - snapshot counter), whatever was posted in between.
///
/// What was taken between a snapshot and the landing of its curve, the carry, is consumed when the curve goes live. A full or a partial post
/// raises that consumption of each side to the end of the first segment that ends there or later, by lowering the snapshot counter that it
/// stores: within a segment the curve may be cheaper than the orders that it stands for, from a segment's end on it never is. Nothing is raised
/// where nothing was taken, within the leading segments on which the poster says that the curve equals the book (exactAskKnots, exactBidKnots),
/// and beyond the depth.
///
/// Trust: a poster of this contract sets the price at which the vault trades, within the market's TTL; it can't move funds by itself. At its
/// worst it sells everything that is not claimed for next to nothing, by a curve of its own and a swap in the same block. The owner can
/// replace the implementation and therefore everything.
interface ICurveBook {
    /// @notice A pair was listed; it can be traded from its first post on. `index` is its place in the order of listing; `lotUnits` and
    /// `tickLotUnits` are its grid, which never changes (see `listMarket`).
    event MarketListed(
        bytes32 indexed market,
        address indexed base,
        address indexed quote,
        uint256 index,
        uint256 lotUnits,
        uint256 tickLotUnits,
        uint256 maxTtlSec
    );
    /// @notice The longest time from a post to its deadline, in seconds, for posts from now on.
    event MaxTtlSet(bytes32 indexed market, uint256 maxTtlSec);
    /// @notice Whether takers with a fee rate pay it in this market from now on. No market charges fees when it is listed.
    event TakerFeesSet(bytes32 indexed market, bool charged);
    /// @notice A curve is live, posted in full or in part. `snapAsk` and `snapBid` are the cumulative base units taken from which on its
    /// consumption counts (modulo 2^92): those that the record names, less what that side was raised by (see above). `wordsHash` is
    /// keccak256 over all packed words of the curve, ask words first; words that a partial post left unchanged are included.
    event CurvePosted(
        bytes32 indexed market,
        uint32 indexed seq,
        uint32 deadline,
        uint96 snapAsk,
        uint96 snapBid,
        bytes32 wordsHash
    );
    /// @notice The curve `baseSeq` is now the curve `seq` and can be traded until `deadline`; words and snapshot volumes are unchanged.
    event CurveTouched(bytes32 indexed market, uint32 indexed seq, uint32 baseSeq, uint32 deadline);
    /// @notice A record of a batch was left out because `seq` is not above `liveSeq`, because its deadline has passed, or because it is a touch
    /// or a partial post that builds on another curve than the live one or on an expired one.
    event PostSkipped(bytes32 indexed market, uint32 indexed seq, uint32 liveSeq);
    /// @notice The owner ended the live curve; the next post needs a sequence number above `seq`.
    event SeqSet(bytes32 indexed market, uint32 seq);
    /// @notice Whether `poster` may post curves from now on.
    event PosterSet(address indexed poster, bool allowed);

    /// @notice The pair was never listed.
    error UnknownMarket(bytes32 market);
    /// @notice The pair is listed already, perhaps the other way round.
    error MarketExists(bytes32 market);
    /// @notice Routes of signed orders may call this token (`IOrderSettler.setTarget`); such a token can't be listed.
    error ForbiddenToken(address token);
    /// @notice The tokens are equal, one has no code, or a number of the grid is out of range (see `listMarket`).
    error BadMarketConfig(
        address base,
        address quote,
        uint256 lotExponent,
        uint256 tickLotMantissa,
        uint256 tickLotExponent
    );
    /// @notice The longest time to a deadline must be from 1 to `maximum` seconds.
    error TtlOutOfRange(uint256 maxTtlSec, uint256 maximum);
    /// @notice Only posters may post.
    error NotPoster(address caller);
    /// @notice Only the entrypoint may consume.
    error NotEntrypoint(address caller);
    /// @notice The packed bytes are wrong at this offset: cut short, too long, of an unknown kind, more than 256 records, or words that
    /// contradict the number of words that they name.
    error MalformedPost(uint256 offset);
    /// @notice The chain does not have the block that the curve was computed from: `actual` is the beginning of the hash that it has at that
    /// number; zero for a block more than 256 blocks ago, or not mined yet.
    error OrphanedBlock(uint256 blockNumber, bytes12 expected, bytes12 actual);
    /// @notice `seq` is not above `liveSeq`, or the record builds on another curve than the live one.
    error StaleSeq(bytes32 market, uint32 seq, uint32 liveSeq);
    /// @notice The sequence number must be from `lowest` to `highest`, both inclusive.
    error SeqOutOfRange(bytes32 market, uint256 seq, uint256 lowest, uint256 highest);
    /// @notice The deadline must be from `earliest` to `latest`, both inclusive: at least one second ahead, at most the market's longest TTL.
    error DeadlineOutOfRange(bytes32 market, uint256 deadline, uint256 earliest, uint256 latest);
    /// @notice The best bid is not below the best ask, both in subticks.
    error CrossedCurve(bytes32 market, uint256 askSubticks, uint256 bidSubticks);
    /// @notice The market's curve expired at `deadline`, which is 0 before the first post and after `setSeq`: wait for the next post.
    error CurveExpired(bytes32 market, uint256 deadline);
    /// @notice `requested` exceeds what is left of the live curve; up to `available`, in the same unit, would have filled.
    error InsufficientDepth(uint256 requested, uint256 available);
    /// @notice An amount of zero can't be traded.
    error ZeroAmount();
    /// @notice `amount` is so small that what it trades for rounds to zero.
    error ZeroOutput(uint256 amount);
    /// @notice Amounts above `maximum`, 2^100 - 1, can't be traded.
    error AmountTooLarge(uint256 amount, uint256 maximum);

    /// @notice What to take from a curve.
    struct Request {
        uint256 amount;
        address tokenIn;
        /// @dev False: `amount` is what comes in; true: `amount` is what goes out.
        bool exactOut;
        address tokenOut;
    }

    /// @notice The result of walking a curve. Amounts are gross: the taker's fee has not been taken off.
    /// The members up to `consumedBefore` are in the order of the data of the entrypoint's `Swap` event.
    struct Fill {
        /// @dev Per market, from 1, strictly rising by one.
        uint256 fillSeq;
        uint256 curveSeq;
        /// @dev True when the taker buys base (the ask side is consumed).
        bool isBuy;
        uint256 baseAmount;
        uint256 quoteAmount;
        /// @dev Both zero; the entrypoint fills them in.
        uint256 fee;
        uint256 inputFee;
        /// @dev Base units of this side of the live curve that were consumed before this fill: taken since the snapshot, and raised when the
        /// curve went live.
        uint256 consumedBefore;
        bytes32 market;
        /// @dev Takers with a fee rate pay it in this market.
        bool chargesFees;
    }

    /// @notice Everything the contract knows of a market, decoded.
    struct MarketState {
        address base;
        address quote;
        uint256 index;
        uint256 lotUnits;
        uint256 tickLotUnits;
        uint256 maxTtlSec;
        uint256 cumAsk;
        uint256 cumBid;
        uint256 fillSeq;
        uint256 snapAsk;
        uint256 snapBid;
        uint256 deadline;
        uint256 seq;
        /// @dev Takers with a fee rate pay it here.
        bool chargesFees;
    }

    /// @notice Lists the pair. Owner only; the grid can never change afterwards. Reverts `BadMarketConfig`, `TtlOutOfRange`,
    /// `ForbiddenToken` and `MarketExists`.
    /// At its worst, whoever may call this lists a token that moves other amounts than it says, or lists a pair with a useless grid, after which
    /// it can't be listed again; nothing trades there before a poster posts.
    /// @param lotExponent from 0 to 18: lotUnits = 10^lotExponent base units.
    /// @param tickLotMantissa from 1 to 1023: tickLotUnits = tickLotMantissa x 10^tickLotExponent quote units in one tick of one lot.
    /// @param tickLotExponent from 0 to 31.
    /// @param maxTtlSec longest time from a post to its deadline, from 1 to 255 seconds.
    /// @return market its id.
    function listMarket(
        address base,
        address quote,
        uint256 lotExponent,
        uint256 tickLotMantissa,
        uint256 tickLotExponent,
        uint256 maxTtlSec
    ) external returns (bytes32 market);

    /// @notice Sets the longest time from a post to its deadline, in seconds from 1 to 255. Owner only. Curves already posted keep their
    /// deadline. Reverts `UnknownMarket` and `TtlOutOfRange`.
    /// At its worst, whoever may call this lets curves be traded for 255 seconds after their post, or for no more than one.
    function setMaxTtl(bytes32 market, uint256 maxTtlSec) external;

    /// @notice Sets whether takers pay their fee rates in this market. Owner only. While it is off, no taker pays a fee here, whatever rate the
    /// entrypoint has for it, and swaps don't read the rates. Reverts `UnknownMarket`.
    /// At its worst, whoever may call this makes takers pay the rates that the entrypoint holds, at most 1 % each; their limits still bind.
    function setTakerFees(bytes32 market, bool charged) external;

    /// @notice Sets the live sequence number back, for a market whose numbers somebody used up. Owner only. Ends the live curve at once; the
    /// next post needs a number above `seq`, which must not be above the live number. Counters of taken units and of fills stay as they are.
    /// Reverts `UnknownMarket` and `SeqOutOfRange`. A record that was made before can land afterwards if its number is above `seq` and its
    /// deadline has not passed: therefore name the highest number that the poster ever used, since its next one is above that.
    /// At its worst, whoever may call this ends curves, again and again.
    function setSeq(bytes32 market, uint32 seq) external;

    /// @notice Sets whether `poster` may post curves. Owner only. See the trust note above for what a poster can do.
    function setPoster(address poster, bool allowed) external;

    /// @notice Whether `account` may post curves.
    function isPoster(address account) external view returns (bool);

    /// @notice Applies one packed record (layout in `PostCodec`), or reverts. Posters only, else `NotPoster`; see the trust note above for what
    /// a poster can do. Reverts `OrphanedBlock` unless the chain still has the block that the curve was computed from, `StaleSeq` unless the
    /// sequence number rises and a touch or a partial post builds on the live curve, `SeqOutOfRange` if the number rises by more than 65,536,
    /// `CurveExpired` when a touch or a partial post builds on a curve that has expired, `DeadlineOutOfRange`, `CrossedCurve`, `MalformedPost`,
    /// `UnknownMarket`.
    function post(bytes calldata data) external;

    /// @notice `post` of up to 256 packed records, by posters only. A record that is out of date (`StaleSeq`, `CurveExpired`, a deadline that
    /// has passed) is skipped and reported by `PostSkipped`; every other error of a record reverts the whole batch. More records revert
    /// `MalformedPost`.
    /// @return applied bit i is set when record i took effect.
    function postBatch(bytes calldata data) external returns (uint256 applied);

    /// @notice Walks the live curve and counts the amount as taken. Entrypoint only, else `NotEntrypoint`. Amounts are base and quote units; the
    /// computed one is rounded once, in the vault's favour. What comes in is what the vault must receive, what goes out is what it may pay.
    /// Reverts `UnknownMarket`, `CurveExpired`, `ZeroAmount`, `AmountTooLarge`, `ZeroOutput`, `InsufficientDepth`.
    function consume(Request calldata request) external returns (Fill calldata fill);

    /// @notice The gross amounts of `consume` now, or zero for both if it would revert. Never reverts because of the market's state.
    function preview(
        address tokenIn,
        address tokenOut,
        uint256 amount,
        bool exactOut
    ) external view returns (uint256 amountIn, uint256 amountOut);

    /// @notice As `preview`, but zero for both also if the vault could not pay `amountOut` now. It is what the entrypoint's quotes return, for
    /// less gas. Never reverts because of the market's state.
    function previewSwap(
        address tokenIn,
        address tokenOut,
        uint256 amount,
        bool exactOut
    ) external view returns (uint256 amountIn, uint256 amountOut);

    /// @notice Whether takers with a fee rate pay it in the market of this pair; false for an unknown one.
    function chargesFees(address tokenIn, address tokenOut) external view returns (bool);

    /// @notice Number of listed markets. None is ever removed.
    function marketCount() external view returns (uint256);

    /// @notice The market listed at `index`, from 0 to `marketCount() - 1`; panics beyond.
    function marketAt(uint256 index) external view returns (bytes32 market);

    /// @notice Whether a market of `token` was ever listed. Reads every market, so it costs more gas the more there are.
    function isListed(address token) external view returns (bool);

    /// @notice Everything that is stored of a market but its curve. Reverts `UnknownMarket` when the pair was never listed.
    function marketState(bytes32 market) external view returns (MarketState memory state);

    /// @notice The packed words of the newest curve, expired or not, as many as each side uses. Reverts `UnknownMarket`.
    function curveWords(bytes32 market) external view returns (uint256[] memory askWords, uint256[] memory bidWords);
}
