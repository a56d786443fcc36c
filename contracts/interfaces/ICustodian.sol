// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title The vault that holds every maker's funds.
/// @notice There is no per-maker balance here: balances live in the off-chain ledger. The only per-maker state is a settled
/// withdrawal claim. Tokens must arrive through `deposit`; a plain transfer is never credited to anybody.
///
/// Trust: a poster of this contract can write any maker's claim, but a claim is only ever paid to the maker it names, after
/// the delay in force when it was settled. The entrypoint can pay out everything that is not claimed. The owner can replace
/// the implementation and therefore everything.
interface ICustodian {
    /// @notice `amount` is what arrived, measured by the vault's balance, not what the caller asked to send.
    event Deposited(address indexed maker, address indexed token, uint256 amount);
    /// @notice A maker asks to withdraw. Nothing is stored, and the delay does not begin, until a poster settles it.
    event WithdrawRequested(address indexed maker, address indexed token, uint256 amount);
    /// @notice The claim of (maker, token) is now `amount`, payable from `readyAt`. `basis` is the version that this settlement
    /// was computed on; makers ignore it. Emitted also when the amount did not change.
    event WithdrawSettled(address indexed maker, address indexed token, uint256 amount, uint256 basis, uint64 readyAt);
    /// @notice The whole claim of (maker, token) was paid to the maker and is zero now.
    event WithdrawExecuted(address indexed maker, address indexed token, uint256 amount);
    /// @notice One element of a batch settlement was left out; `reason` is the selector of the error it would have reverted with.
    event SettlementSkipped(address indexed maker, address indexed token, uint256 amount, uint256 basis, bytes4 reason);
    /// @notice Whether `poster` may settle withdrawals from now on.
    event PosterSet(address indexed poster, bool allowed);
    /// @notice Seconds from settlement to payment, for claims settled from now on.
    event WithdrawDelaySet(uint256 delaySec);

    /// @notice The amount is zero.
    error ZeroAmount();
    /// @notice The vault's balance did not rise by a deposit.
    error NothingReceived(address token);
    /// @notice A deposit or a settlement was called while a swap is under way, from a token's hook: call it outside of swaps.
    error SwapUnderWay();
    /// @notice A claim can be at most `maximum`, 2^128 - 1.
    error AmountTooLarge(uint256 amount, uint256 maximum);
    /// @notice Nothing is settled for the caller in this token: never, not yet, cancelled, or paid already.
    error NoClaim();
    /// @notice The claim is payable from `readyAt` on, in seconds of chain time.
    error ClaimNotReady(uint64 readyAt);
    /// @notice The settlement was computed on version `given` of the claim, which is at version `current` now. Compute it anew.
    error StaleBasis(uint256 given, uint256 current);
    /// @notice `requested` exceeds what the vault holds beyond its settled claims, `available`.
    error InsufficientLiquidity(address token, uint256 requested, uint256 available);
    /// @notice Only posters may settle.
    error NotPoster(address caller);
    /// @notice Only the entrypoint may pay out.
    error NotEntrypoint(address caller);
    /// @notice Zero and the platform's own contracts are no recipients.
    error ForbiddenRecipient(address recipient);

    /// @notice One element of a batch settlement; the fields are the arguments of `settleWithdraw`.
    struct Settlement {
        address maker;
        address token;
        uint256 amount;
        uint256 basis;
    }

    /// @notice What a swap pays out of its gross output, `amount` + `withheld`.
    struct Payment {
        address token;
        address to;
        uint256 amount;
        uint256 withheld;
    }

    /// @notice Moves `amount` of `token` from the caller into the vault. The ledger credits `msg.sender` with what arrived.
    /// Reverts `ZeroAmount`, `NothingReceived` when the vault's balance did not rise, and `SwapUnderWay` when a token's hook calls it from
    /// inside a swap, whose payment would be credited as well.
    function deposit(address token, uint256 amount) external;

    /// @notice Announces a withdrawal. Reverts `ZeroAmount` for zero; any other amount is accepted, whoever calls.
    function requestWithdraw(address token, uint256 amount) external;

    /// @notice Sets (never adds to) the claim of `maker` in `token`. Posters only; see the trust note above for what one can do.
    /// Raising needs `basis` equal to `claimBasis(maker, token)`, else `StaleBasis`, and free liquidity for the difference, else
    /// `InsufficientLiquidity`; the delay begins anew: readyAt = block.timestamp + withdrawDelay(), at most 2^64 - 1. Lowering ignores `basis`
    /// and keeps readyAt. An equal amount changes no state and still emits `WithdrawSettled`. Reverts `AmountTooLarge` above 2^128 - 1, and
    /// `SwapUnderWay` when a token's hook calls it from inside a swap, which may be about to pay out the liquidity that the claim would count
    /// on.
    function settleWithdraw(address maker, address token, uint256 amount, uint256 basis) external;

    /// @notice `settleWithdraw` for each element, by posters only; an element that would revert `StaleBasis` or `InsufficientLiquidity` is
    /// skipped and reported by `SettlementSkipped`, the others take effect. `AmountTooLarge` and `SwapUnderWay` revert the whole batch.
    function settleWithdrawBatch(Settlement[] calldata settlements) external;

    /// @notice Pays the caller's whole settled claim to the caller. Reverts `NoClaim` without one, `ClaimNotReady` before readyAt, and with the
    /// token's own error when its transfer fails.
    function executeWithdraw(address token) external;

    /// @notice The settled claim; amount 0 means none, cancelled, or executed already.
    function claim(address maker, address token) external view returns (uint256 amount, uint64 readyAt);

    /// @notice Version of the claim: how many times it was raised, lowered or executed so far.
    function claimBasis(address maker, address token) external view returns (uint256 basis);

    /// @notice Sum of all settled claims in `token`.
    function totalClaims(address token) external view returns (uint256);

    /// @notice Seconds from settlement to payment, for claims settled from now on.
    function withdrawDelay() external view returns (uint256 delaySec);

    /// @notice Sets the seconds from settlement to payment. Owner only; any value including zero. Claims settled earlier keep their readyAt.
    /// At its worst, whoever may call this takes away the time in which a false settlement can be noticed, or makes claims settled from then
    /// on wait for ever.
    function setWithdrawDelay(uint256 delaySec) external;

    /// @notice Sets whether `poster` may settle withdrawals. Owner only. See the trust note above for what a poster can do.
    function setPoster(address poster, bool allowed) external;

    /// @notice Whether `account` may settle withdrawals.
    function isPoster(address account) external view returns (bool);

    /// @notice Holdings minus settled claims, zero if claims exceed holdings. This is what swaps may spend.
    function availableLiquidity(address token) external view returns (uint256);

    /// @notice Whether nothing may be paid to `account`: zero, and the platform's own contracts, implementations and periphery included.
    function isForbiddenRecipient(address account) external view returns (bool);

    /// @notice Whether a deposit, a settlement or the execution of a claim is under way in this transaction, so that what swaps may spend is
    /// about to change.
    function isLocked() external view returns (bool);

    /// @notice Sends vault funds for a swap. Entrypoint only, else `NotEntrypoint`. Reverts `InsufficientLiquidity` above
    /// `availableLiquidity(token)`, `ForbiddenRecipient` where `isForbiddenRecipient(to)` unless `to` is the settler and says that it is
    /// receiving, and `ReentrancyGuardReentrantCall` while `isLocked()`.
    /// @return available What swaps may still spend of this token, if the token moved exactly `amount`.
    function payOut(address token, address to, uint256 amount) external returns (uint256 available);

    /// @notice As `payOut` of `payment.amount`, but `payment.withheld` more must be free, too. That is the taker's fee, which stays in the
    /// vault: the makers have sold it like the rest of the output, so it must not be part of what backs settled claims. Entrypoint only.
    /// @return available What swaps may still spend of this token, `payment.withheld` included.
    function payOutWithheld(Payment calldata payment) external returns (uint256 available);
}
