// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {Ownable2StepUpgradeable} from "@openzeppelin/contracts-upgradeable/access/Ownable2StepUpgradeable.sol";
import {ICustodian} from "./interfaces/ICustodian.sol";
import {IOrderSettler} from "./interfaces/IOrderSettler.sol";
import {IEntrypoint} from "./interfaces/IEntrypoint.sol";
import {Tokens} from "./libraries/Tokens.sol";
import {ClaimWord, ClaimWordLibrary} from "./types/ClaimWord.sol";

/// @title Custodian
/// @notice The documentation is in {ICustodian}.
///
/// Deposits, settlements and executions of claims hold one transient lock, and no swap is paid while it is held. So a token's hook can't finish
/// a swap inside a deposit and have the swap's payment counted as part of the deposit, nor be paid out what an execution is about to take.
/// While the entrypoint's own lock says that a swap is under way, nothing is deposited or settled: tokens that arrive may be the swap's payment,
/// and the liquidity that a settlement would count on may be about to leave. A claim may be executed even then, since claims and holdings fall
/// by the same amount.
contract Custodian is ICustodian, Ownable2StepUpgradeable, UUPSUpgradeable, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

    /// @notice The contracts of a deployment beside this implementation of the custodian. They are fixed here: when one of the other
    /// implementations is replaced, the custodian refuses to pay to the new one only after it got a new implementation itself.
    struct Peers {
        address custodian;
        address curveBook;
        address entrypoint;
        address settler;
        address lens;
        address adapter;
        /// @dev Implementation behind `curveBook`.
        address curveBookCode;
        /// @dev Implementation behind `entrypoint`.
        address entrypointCode;
    }

    /* STORAGE */

    /// @custom:storage-location erc7201:curvebook.storage.Custodian
    struct CustodianStorage {
        mapping(address token => uint256) totalClaims;
        mapping(address maker => mapping(address token => ClaimWord)) claims;
        mapping(address account => bool) posters;
        uint256 withdrawDelaySec;
    }

    // keccak256(abi.encode(uint256(keccak256("curvebook.storage.Custodian")) - 1)) & ~bytes32(uint256(0xff))
    bytes32 private constant STORAGE_LOCATION = 0x9295d08effc37f85f799cc64c660d358a5270cc216b631af1e4fcbfade497100;

    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable ENTRYPOINT;
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable CURVE_BOOK;
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable SETTLER;

    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable CUSTODIAN;
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable LENS;
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable ADAPTER;
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable CURVE_BOOK_CODE;
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable ENTRYPOINT_CODE;
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    address private immutable SELF;
    /// @dev Bit b is set if b is the last byte of the zero address or of the address of any of the peers.
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    uint256 private immutable LAST_BYTES;
    /// @dev The same for the last byte but one.
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    uint256 private immutable NEXT_BYTES;

    /* SETUP */

    /// @param peers The platform's contracts, each of which is refused as a recipient. A contract that a deployment does not have is zero.
    /// @custom:oz-upgrades-unsafe-allow constructor
    constructor(Peers memory peers) {
        ENTRYPOINT = peers.entrypoint;
        CURVE_BOOK = peers.curveBook;
        SETTLER = peers.settler;
        CUSTODIAN = peers.custodian;
        LENS = peers.lens;
        ADAPTER = peers.adapter;
        CURVE_BOOK_CODE = peers.curveBookCode;
        ENTRYPOINT_CODE = peers.entrypointCode;
        SELF = address(this);
        address[9] memory refused = [
            address(0),
            peers.custodian,
            peers.curveBook,
            peers.entrypoint,
            peers.settler,
            peers.lens,
            peers.adapter,
            peers.curveBookCode,
            peers.entrypointCode
        ];
        uint256 lastBytes = 0;
        uint256 nextBytes = 0;
        for (uint256 i = 0; i < refused.length; ++i) {
            uint256 account = uint160(refused[i]);
            lastBytes |= 1 << (account & 0xff);
            nextBytes |= 1 << ((account >> 8) & 0xff);
        }
        LAST_BYTES = lastBytes;
        NEXT_BYTES = nextBytes;
        _disableInitializers();
    }

    /// @notice Called once, by the proxy's constructor.
    /// @param delaySec As in `setWithdrawDelay`.
    function initialize(address owner, uint256 delaySec) external initializer {
        __Ownable_init(owner);
        _setWithdrawDelay(delaySec);
    }

    function _authorizeUpgrade(address) internal override onlyOwner {}

    /* ONLY OWNER FUNCTIONS */

    /// @inheritdoc ICustodian
    function setWithdrawDelay(uint256 delaySec) external onlyOwner {
        _setWithdrawDelay(delaySec);
    }

    /// @inheritdoc ICustodian
    function setPoster(address poster, bool allowed) external onlyOwner {
        _storage().posters[poster] = allowed;
        emit PosterSet(poster, allowed);
    }

    /* MAKERS */

    modifier outsideSwaps() {
        if (IEntrypoint(ENTRYPOINT).isLocked()) revert SwapUnderWay();
        _;
    }

    /// @inheritdoc ICustodian
    function deposit(address token, uint256 amount) external nonReentrant outsideSwaps {
        if (amount == 0) revert ZeroAmount();
        uint256 received = Tokens.pull(token, address(this), amount);
        if (received == 0) revert NothingReceived(token);
        // Tokens that somebody else sent meanwhile, in a hook of this token, are not this maker's.
        if (received > amount) received = amount;
        emit Deposited(msg.sender, token, received);
    }

    /// @inheritdoc ICustodian
    function requestWithdraw(address token, uint256 amount) external {
        if (amount == 0) revert ZeroAmount();
        emit WithdrawRequested(msg.sender, token, amount);
    }

    /// @inheritdoc ICustodian
    function executeWithdraw(address token) external nonReentrant {
        CustodianStorage storage $ = _storage();
        ClaimWord current = $.claims[msg.sender][token];
        uint256 amount = current.amount();
        if (amount == 0) revert NoClaim();
        if (block.timestamp < current.readyAt()) revert ClaimNotReady(current.readyAt());
        $.claims[msg.sender][token] = current.setAmount(0).setReadyAt(0).bump();
        $.totalClaims[token] -= amount;
        IERC20(token).safeTransfer(msg.sender, amount);
        emit WithdrawExecuted(msg.sender, token, amount);
    }

    /* SETTLEMENT */

    modifier onlyPoster() {
        if (!_storage().posters[msg.sender]) revert NotPoster(msg.sender);
        _;
    }

    /// @inheritdoc ICustodian
    function settleWithdraw(
        address maker,
        address token,
        uint256 amount,
        uint256 basis
    ) external onlyPoster nonReentrant outsideSwaps {
        ClaimWord current = _storage().claims[maker][token];
        bytes4 refusal = _refusal(current, token, amount, basis);
        if (refusal == StaleBasis.selector) revert StaleBasis(basis, current.basis());
        if (refusal == InsufficientLiquidity.selector) {
            revert InsufficientLiquidity(token, amount - current.amount(), availableLiquidity(token));
        }
        _settle(current, maker, token, amount, basis);
    }

    /// @inheritdoc ICustodian
    function settleWithdrawBatch(Settlement[] calldata settlements) external onlyPoster nonReentrant outsideSwaps {
        for (uint256 i = 0; i < settlements.length; ++i) {
            Settlement calldata s = settlements[i];
            ClaimWord current = _storage().claims[s.maker][s.token];
            bytes4 refusal = _refusal(current, s.token, s.amount, s.basis);
            if (refusal == 0) _settle(current, s.maker, s.token, s.amount, s.basis);
            else emit SettlementSkipped(s.maker, s.token, s.amount, s.basis, refusal);
        }
    }

    /// @dev Only a raise can be refused: it must be computed on the present version of the claim, and free liquidity must cover it. An amount
    /// that a claim can't hold reverts at once, in a batch, too.
    /// @return selector Of the error to revert with or to report; zero when the settlement is to be carried out.
    function _refusal(
        ClaimWord current,
        address token,
        uint256 amount,
        uint256 basis
    ) private view returns (bytes4 selector) {
        if (amount > ClaimWordLibrary.MAX_AMOUNT) revert AmountTooLarge(amount, ClaimWordLibrary.MAX_AMOUNT);
        if (amount <= current.amount()) return 0;
        if (basis != current.basis()) return StaleBasis.selector;
        if (amount - current.amount() > availableLiquidity(token)) return InsufficientLiquidity.selector;
    }

    function _settle(ClaimWord current, address maker, address token, uint256 amount, uint256 basis) private {
        CustodianStorage storage $ = _storage();
        uint256 previous = current.amount();
        if (amount != previous) {
            ClaimWord next = current.setAmount(amount).bump();
            if (amount > previous) {
                next = next.setReadyAt(_readyAt($.withdrawDelaySec));
                $.totalClaims[token] += amount - previous;
            } else {
                $.totalClaims[token] -= previous - amount;
            }
            $.claims[maker][token] = next;
            current = next;
        }
        emit WithdrawSettled(maker, token, amount, basis, current.readyAt());
    }

    /* ENTRYPOINT */

    /// @inheritdoc ICustodian
    function payOut(address token, address to, uint256 amount) external returns (uint256 available) {
        return _payOut(token, to, amount, 0);
    }

    /// @inheritdoc ICustodian
    function payOutWithheld(Payment calldata payment) external returns (uint256 available) {
        address token;
        address to;
        uint256 amount;
        uint256 withheld;
        // Same as (token, to, amount, withheld) = (payment.token, payment.to, payment.amount, payment.withheld). The entrypoint has checked
        // the addresses as it decoded them; nobody else comes beyond the first check.
        assembly ("memory-safe") {
            token := calldataload(payment)
            to := calldataload(add(payment, 0x20))
            amount := calldataload(add(payment, 0x40))
            withheld := calldataload(add(payment, 0x60))
        }
        available = _payOut(token, to, amount, withheld);
        // Same as return available.
        assembly ("memory-safe") {
            mstore(0x00, available)
            return(0x00, 0x20)
        }
    }

    /// @dev Checks the lock without taking it: the entrypoint holds its own lock meanwhile, under which nothing is deposited or settled.
    function _payOut(address token, address to, uint256 amount, uint256 withheld) private returns (uint256 available) {
        if (_mayBeRefused(to)) _refuse(to);
        available = availableLiquidity(token);
        bool covered;
        // Same as covered = amount <= available && withheld <= available - amount, without a jump.
        assembly ("memory-safe") {
            covered := iszero(or(gt(amount, available), gt(withheld, sub(available, amount))))
        }
        if (!covered) revert InsufficientLiquidity(token, amount + withheld, available);
        unchecked {
            available -= amount;
        }
        Tokens.push(token, to, amount);
    }

    /// @dev False only if this caller may make a payment to this recipient now; true when `_refuse` must decide. Tokens sent to the zero
    /// address, or to one of the platform's own contracts, would be lost or counted as somebody's payment.
    function _mayBeRefused(address to) private view returns (bool possible) {
        (address entrypoint, address self, uint256 lastBytes, uint256 nextBytes) = (
            ENTRYPOINT,
            SELF,
            LAST_BYTES,
            NEXT_BYTES
        );
        bool entered = _reentrancyGuardEntered();
        // Same as entered || msg.sender != ENTRYPOINT || isForbiddenRecipient(to), but true for about one other recipient in 800, too: for each
        // whose last byte is that of a forbidden account and whose last byte but one is that of a forbidden account. With up to nine values of
        // either byte these are at most 81 of 65,536 endings. Costs two look-ups, however many accounts are forbidden.
        assembly ("memory-safe") {
            let ending := and(and(shr(byte(31, to), lastBytes), shr(byte(30, to), nextBytes)), 1)
            possible := or(or(entered, iszero(eq(caller(), entrypoint))), or(ending, eq(to, self)))
        }
    }

    /// @dev Reverts if the payment may not be made, and returns if it may.
    function _refuse(address to) private view {
        if (_reentrancyGuardEntered()) revert ReentrancyGuardReentrantCall();
        if (msg.sender != ENTRYPOINT) revert NotEntrypoint(msg.sender);
        if (isForbiddenRecipient(to) && !_isReceiving(to)) revert ForbiddenRecipient(to);
    }

    /// @dev Whether `to` is the settler while it says that it is receiving: it passes on what it gets within the same order.
    function _isReceiving(address to) private view returns (bool) {
        return to == SETTLER && to.code.length != 0 && IOrderSettler(to).isReceiving();
    }

    /* VIEWS */

    /// @inheritdoc ICustodian
    function availableLiquidity(address token) public view returns (uint256 units) {
        uint256 held = Tokens.balanceOf(token, address(this));
        uint256 claimed = _storage().totalClaims[token];
        // Same as units = held > claimed ? held - claimed : 0, without a jump.
        assembly ("memory-safe") {
            units := mul(gt(held, claimed), sub(held, claimed))
        }
    }

    /// @inheritdoc ICustodian
    function isForbiddenRecipient(address account) public view returns (bool forbidden) {
        bool proxy = account == CUSTODIAN || account == CURVE_BOOK || account == ENTRYPOINT;
        bool code = account == SELF || account == CURVE_BOOK_CODE || account == ENTRYPOINT_CODE;
        return account == address(0) || proxy || code || account == SETTLER || account == LENS || account == ADAPTER;
    }

    /// @inheritdoc ICustodian
    function isLocked() external view returns (bool) {
        return _reentrancyGuardEntered();
    }

    /// @inheritdoc ICustodian
    function claim(address maker, address token) external view returns (uint256 amount, uint64 readyAt) {
        ClaimWord current = _storage().claims[maker][token];
        return (current.amount(), current.readyAt());
    }

    /// @inheritdoc ICustodian
    function claimBasis(address maker, address token) external view returns (uint256 basis) {
        return _storage().claims[maker][token].basis();
    }

    /// @inheritdoc ICustodian
    function totalClaims(address token) external view returns (uint256) {
        return _storage().totalClaims[token];
    }

    /// @inheritdoc ICustodian
    function withdrawDelay() external view returns (uint256 delaySec) {
        return _storage().withdrawDelaySec;
    }

    /// @inheritdoc ICustodian
    function isPoster(address account) external view returns (bool) {
        return _storage().posters[account];
    }

    /* INTERNAL */

    function _setWithdrawDelay(uint256 delaySec) private {
        _storage().withdrawDelaySec = delaySec;
        emit WithdrawDelaySet(delaySec);
    }

    /// @dev Saturates: a delay beyond the range of readyAt means never, not soon.
    function _readyAt(uint256 delaySec) private view returns (uint256) {
        uint256 longest = type(uint64).max - block.timestamp;
        return delaySec < longest ? block.timestamp + delaySec : type(uint64).max;
    }

    function _storage() private pure returns (CustodianStorage storage $) {
        assembly ("memory-safe") {
            $.slot := STORAGE_LOCATION
        }
    }
}
